"""A schedule file: which sweep runs when, what happens if it cannot, and who is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scheduler.manifest.check import check
from scheduler.manifest.document import Document
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault, nearest_name
from scheduler.manifest.files import nearest_path, read_document
from scheduler.manifest.roots import find_manifests
from scheduler.series.cron import Cron, CronError, find_zone, zone_names
from workers.contract.base import Strict
from workers.contract.condition import NonEmpty

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

Duration = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,5}[smhd])$")]
"""``0``, or a whole number of seconds, minutes, hours or days: ``90s``, ``15m``, ``6h``, ``3d``."""

Event = Literal["regression", "recovered", "inconclusive", "outage", "pass", "not_run"]
"""What people may be told of; ``not_run``: a due time was missed, skipped or cancelled."""


def seconds(duration: str) -> timedelta:
    """The time that a duration says."""
    if duration == "0":
        return timedelta()
    return timedelta(**{_UNITS[duration[-1]]: int(duration[:-1])})


class GateRule(Strict):
    """How a run is held against those before it."""

    baseline: Annotated[str, Field(pattern=r"^(last_good|[0-9]{8}T[0-9]{6}Z)$")] = "last_good"
    """``last_good``, or the due time of a run as it stands in its sweep's id. Runs before a pinned
    one are not looked at."""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """How far the workflow rate may fall: a difference of rates."""
    false_alarms_a_year: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """The chance that a year of an unchanged agent has any alarm."""


class Webhook(Strict):
    """Where notices are posted."""

    url: NonEmpty | None = None
    url_env: NonEmpty | None = None
    """The *name* of the variable that holds the URL, where the URL itself is a secret."""
    secret_env: NonEmpty | None = None
    """The *name* of the variable with the key that signs notices; null: they are not signed."""

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("url or url_env is needed, and only one of them")
        if self.url is not None and not re.fullmatch(r"https?://[^/@\s]+(/\S*)?", self.url):
            raise ValueError("url must be http:// or https:// and a host, without a password")
        return self


class Notify(Strict):
    """Who is told of what."""

    events: Annotated[tuple[Event, ...], Field(min_length=1)] = (
        "regression",
        "recovered",
        "outage",
    )
    webhook: Webhook | None = None
    file: NonEmpty | None = None
    """A file that gets one line of JSON for each notice; relative to the schedule's folder."""


class Retention(Strict):
    """How long what may go is kept; evidence, rewards and records are kept for ever."""

    logs: Duration | None = None
    """Agent, container and verifier logs of a run's tries; null: for ever."""
    images: Duration | None = None
    """Task images of this machine that no sweep has used; null: until ``apiary reap``."""


class ScheduleFile(Strict):
    """A schedule file, schema version 1. Relative paths start at the file's folder."""

    schema_version: Literal[1]
    series: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    """The series' name; a run's sweep id is this and its due time."""
    sweep: NonEmpty
    """Path of the sweep file."""
    cron: NonEmpty
    """Minute, hour, day of month, month, day of week; on the wall clock of ``zone``."""
    zone: NonEmpty
    """IANA name of the time zone."""
    jitter: Duration = "0"
    """A run starts up to so much later than it is due; series and due time say how much."""
    overlap: Literal["skip", "queue", "cancel"] = "skip"
    """What a due time does while a run of the series is still at work: nothing comes of it, it
    waits, or the older run is cancelled."""
    catch_up: Literal["none", "last", "all"] = "last"
    """Which of the due times that nobody was there for are run later."""
    catch_up_within: Duration = "7d"
    """Not those that are older."""
    grace: Duration = "15m"
    """A start that is no later than this is in time, and needs no catching up."""
    deadline: Duration = "1d"
    """A run that is not done so long after its start is ended."""
    gate: GateRule = GateRule()
    notify: Notify = Notify()
    retention: Retention = Retention()

    @model_validator(mode="after")
    def _policies_agree(self) -> Self:
        if self.catch_up == "all" and self.overlap != "queue":
            raise ValueError(
                "catch_up 'all' needs overlap 'queue': else each run that is caught up is "
                f"{'skipped for' if self.overlap == 'skip' else 'cancelled by'} another"
            )
        if self.deadline == "0":
            raise ValueError("deadline must be above 0")
        return self


@dataclass(frozen=True)
class Schedule:
    """A checked schedule file."""

    file: ScheduleFile
    path: Path
    cron: Cron

    @property
    def series(self) -> str:
        """The series' name."""
        return self.file.series

    @property
    def sweep_path(self) -> Path:
        """The sweep file."""
        return self.path.parent / self.file.sweep


def load_schedule(path: Path) -> Schedule:
    """Reads a schedule file.

    Raises:
        ManifestError: with every fault of it.
    """
    document = read_document(path)
    file = check(ScheduleFile, document)
    faults = list(_faults(document, file, path))
    if faults:
        raise ManifestError(faults)
    return Schedule(file, path, Cron(file.cron, find_zone(file.zone)))


def load_schedules(paths: tuple[Path, ...]) -> tuple[Schedule, ...]:
    """Reads schedule files, and all of a folder; no series may be there twice.

    Args:
        paths: files and folders; empty: ``schedules`` of the manifests folder.

    Raises:
        ManifestError: with every fault of all of them.
    """
    faults = FaultList()
    found: list[Schedule] = []
    default = find_manifests(Path()) / "schedules"
    if not paths and not default.is_dir():
        message = "there is no such folder: name a schedule file, or start in the checkout"
        raise ManifestError([ManifestFault(str(default), None, "", message)])
    for path in paths or (default,):
        files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not files:
            faults.add(ManifestFault(str(path), None, "", "no schedule (*.yaml) is in this folder"))
        for file in files:
            with faults.gathering():
                found.append(load_schedule(file))
    first: dict[str, Path] = {}
    for each in found:
        if each.series in first:
            message = f"{each.series!r} is the series of {first[each.series]} too"
            faults.add(ManifestFault(str(each.path), None, "series", message))
        first.setdefault(each.series, each.path)
    faults.settle()
    return tuple(found)


def _faults(document: Document, file: ScheduleFile, path: Path) -> Iterator[ManifestFault]:
    try:
        zone = find_zone(file.zone)
    except CronError as error:
        yield document.fault(("zone",), str(error), nearest_name(file.zone, zone_names()))
    else:
        try:
            Cron(file.cron, zone)
        except CronError as error:
            yield document.fault(("cron",), str(error))
    sweep = path.parent / file.sweep
    if not sweep.is_file():
        message = f"there is no file {sweep}"
        yield document.fault(("sweep",), message, nearest_path(sweep))
