"""What became of a sweep: planned, committed, counted twice, lost, left over.

Read from the store as it lies on the disk, from the S3 server's own list of accepted results,
and from what every command has told, so that no part of the queue vouches for itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.bench.command import Command
from scheduler.bench.servers import BucketServer
from scheduler.lock import Lock, lock_key
from scheduler.lock_plan import plan_from_lock
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord

PREFIX = "bench"
"""Of the store in its bucket."""


@dataclass(frozen=True)
class Tally:
    """A sweep, counted; ids of attempts."""

    planned: frozenset[str]
    committed: frozenset[str]
    twice: frozenset[str]
    """Written over, or told of under two tries, or under another than the one that counts."""
    vanished: frozenset[str]
    """Told of as counted, and not in the store."""
    incomplete: frozenset[str]
    """Committed, and a file of the try is not in the store."""
    misjudged: frozenset[str]
    """Committed as failed: the model of a bench does everything right."""
    causes: Counter[str]
    """Of the tries that gave no verdict."""

    @property
    def lost(self) -> frozenset[str]:
        """Planned or told of, without a result or without its evidence."""
        return (self.planned - self.committed) | self.vanished | self.incomplete


@dataclass(frozen=True)
class Left:
    """What should not be there any more."""

    containers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Of all kinds."""
        return sum(len(found) for found in self.kinds().values())

    def kinds(self) -> dict[str, tuple[str, ...]]:
        """By kind."""
        return {
            "containers": self.containers,
            "volumes": self.volumes,
            "networks": self.networks,
            "processes": self.processes,
            "folders": self.folders,
        }


def read_tally(bucket: BucketServer, sweep: str, commands: Sequence[Command]) -> Tally:
    """Counts a sweep.

    Raises:
        FormatError: a lock or a record cannot be read.
    """
    root = bucket.objects / PREFIX / "sweeps" / sweep
    told = [event for command in commands for event in command.events("try")]
    written = [key for key in bucket.results_written() if f"/sweeps/{sweep}/" in f"/{key}"]
    return tally_of(root, planned_attempts(bucket, sweep), written, told)


def tally_of(
    root: Path,
    planned: frozenset[str],
    written: Sequence[str],
    told: Sequence[Mapping[str, Any]],
) -> Tally:
    """Counts a sweep from its parts.

    Args:
        root: where its objects lie.
        planned: its attempts.
        written: the key of every write of a result that was accepted.
        told: the events of ended tries that its commands printed.

    Raises:
        FormatError: a record cannot be read.
    """
    read = [_record(path) for path in root.glob("attempts/*/*/result.json")]
    records = {record.attempt: record for record in read}
    writes = Counter(key.split("/")[-2] for key in written)
    twice = {attempt for attempt, count in writes.items() if count > 1}
    counted: defaultdict[str, set[str]] = defaultdict(set)
    for event in told:
        if event["verdict"] != Verdict.INVALID:
            counted[event["attempt"]].add(event["try"])
    twice |= {
        attempt
        for attempt, tries in counted.items()
        if attempt in records and tries != {records[attempt].try_}
    }
    tries = [_record(path) for path in root.glob("tries/*/*/*/try.json")]
    return Tally(
        planned=planned,
        committed=frozenset(records),
        twice=frozenset(twice),
        vanished=frozenset(set(counted) - set(records)),
        incomplete=frozenset(name for name, record in records.items() if _lacks(root, record)),
        misjudged=frozenset(
            name for name, record in records.items() if record.verdict is not Verdict.PASS
        ),
        causes=Counter(each.cause.value for each in tries if each.verdict is Verdict.INVALID),
    )


def planned_attempts(bucket: BucketServer, sweep: str) -> frozenset[str]:
    """The attempts of a sweep by its first lock: a bench's sweep does not grow."""
    path = bucket.objects / PREFIX / lock_key(sweep, 1)
    lock = Lock.from_json(_body(path), str(path))
    return frozenset(each.attempt for each in plan_from_lock(lock).attempts)


def _lacks(root: Path, record: TryRecord) -> bool:
    """Whether a file that a record names is not there."""
    folder = root / "tries" / record.attempt[:2] / record.attempt / record.try_
    return any(not (folder / name).is_file() for name in record.files)


def _record(path: Path) -> TryRecord:
    return TryRecord.from_json(_body(path), str(path))


def _body(path: Path) -> bytes:
    """An object without the line that the S3 server keeps above it."""
    return path.read_bytes().partition(b"\n")[2]
