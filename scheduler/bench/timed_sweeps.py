"""Sweeps by the command itself, as a user starts them, and what their records say of the time."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from scheduler.bench.command import Command
from scheduler.bench.machine import core_seconds
from scheduler.bench.processes import BenchError, end_all
from scheduler.bench.surroundings import base_image, bench_environment
from scheduler.settings import Settings
from workers.contract.outcome import Phase, Verdict
from workers.contract.result import TryRecord

WITHIN_S = 1800.0
"""For one sweep, however slow the machine is."""


@dataclass(frozen=True)
class TimedSweep:
    """What one sweep took."""

    records: tuple[TryRecord, ...]
    first_lease_s: float
    """From the command's start until a node began with the first trial."""
    trials_s: float
    """From then on until the last trial was committed."""
    command_s: float
    """From the command's start to its end."""
    core_s: float
    """Work of the whole machine while the command ran."""

    @property
    def per_s(self) -> float:
        """Trials a second."""
        return len(self.records) / self.trials_s

    @property
    def trial_s(self) -> float:
        """The median trial, from its lease until its record is written."""
        return median(_at(each.ended_at) - _at(each.started_at) for each in self.records)

    @property
    def phases(self) -> dict[str, float]:
        """The median of each phase that trials had, in their order; seconds."""
        found = {
            phase.value: [
                each.phase_seconds[phase.value]
                for each in self.records
                if phase.value in each.phase_seconds
            ]
            for phase in Phase
        }
        return {phase: median(times) for phase, times in found.items() if times}

    @property
    def ours_s(self) -> float:
        """The median of a trial's time that is neither the agent's nor the verifier's."""
        theirs = (Phase.DRIVE.value, Phase.VERIFY.value)
        return median(
            sum(seconds for phase, seconds in each.phase_seconds.items() if phase not in theirs)
            for each in self.records
        )


class TimedSweeps:
    """Sweeps of one task, one after another, in a folder; ``timed_sweeps`` makes and ends it."""

    def __init__(self, folder: Path, manifests: Path, settings: Settings, seed: int) -> None:
        """Starts nothing yet.

        Args:
            folder: empty, with a short path.
            manifests: the folder of tasks and conditions.
            settings: of the command that runs the bench.
            seed: of the sweeps.
        """
        self.base_image = base_image(settings)
        self.folder = folder
        self.manifests = manifests.absolute()
        self._seed = seed
        self._mark = secrets.token_hex(8)
        self._made = 0
        self._store = folder / "s"
        self.outside = settings.environment
        """The surroundings of whoever runs the bench: a peer's."""
        self._environment = bench_environment(folder, settings)
        (folder / "home" / "manifests").symlink_to(self.manifests)

    def run(
        self,
        sweep: Mapping[str, Any],
        attempts: int,
        parallel: int,
        starts_per_s: float | None = None,
    ) -> TimedSweep:
        """Runs a sweep to its end.

        Args:
            sweep: of its file: ``tasks``, who plays them, and what differs from ``sealed``.
            attempts: how many.
            parallel: how many at once.
            starts_per_s: how many containers the node may start a second; null: any number.

        Raises:
            BenchError: it was not done, or not every attempt passed: its time means nothing.
        """
        self._made += 1
        name = f"bench-{self._made}"
        file = self.folder / "home" / f"{name}.yaml"
        document = {
            "name": name,
            "attempts": attempts,
            "network": "sealed",
            "seed": self._seed,
            "limits": {"container_starts_per_s": starts_per_s} if starts_per_s else {},
            **sweep,
        }
        file.write_text(json.dumps(document))
        work, began, started = core_seconds(), time.time(), time.monotonic()
        command = Command(
            ("run", str(file), "--n-concurrent", str(parallel), "--store", f"file://{self._store}"),
            self._environment,
            self._mark,
            self.folder / "home" / name,
        )
        try:
            code = command.wait(WITHIN_S)
            command_s = time.monotonic() - started
            work = core_seconds() - work
        finally:
            end_all(self._mark)
        records, last = self._read(command.sweep)
        wrong = [each for each in records if each.verdict is not Verdict.PASS]
        if code != 0 or len(records) != attempts or wrong:
            causes = ", ".join(sorted({f"{each.cause}: {each.detail}" for each in wrong}))
            raise BenchError(
                f"apiary run ended with {code} and {len(records) - len(wrong)} of {attempts} passes"
                f" ({causes or 'no cause'}): {command.errors()[-1000:]}"
            )
        first = min(_at(each.started_at) for each in records)
        return TimedSweep(tuple(records), first - began, last - first, command_s, work)

    def python_s(self, *arguments: str) -> float:
        """How long this interpreter takes, where commands run.

        Raises:
            BenchError: it failed.
        """
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder / "home",
            env=self._environment,
            capture_output=True,
            timeout=WITHIN_S,
        )
        if done.returncode != 0:
            raise BenchError(f"{' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return time.monotonic() - started

    def _read(self, sweep: str) -> tuple[list[TryRecord], float]:
        """What was committed, and when the last of it was; seconds since 1970."""
        places = list((self._store / "sweeps" / sweep / "attempts").glob("*/*/result.json"))
        records = [TryRecord.from_json(place.read_bytes(), str(place)) for place in places]
        return records, max((place.stat().st_mtime for place in places), default=0.0)

    def close(self) -> None:
        """Ends what still runs."""
        end_all(self._mark)


@contextmanager
def timed_sweeps(manifests: Path, settings: Settings, seed: int) -> Iterator[TimedSweeps]:
    """A place for sweeps, removed when it is left.

    Raises:
        BenchError: there is no base image.
    """
    folder = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))  # sockets' paths must be short
    try:
        made = TimedSweeps(folder, manifests, settings, seed)
        try:
            yield made
        finally:
            made.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
