"""A year of a nightly and a weekly series, with all that goes wrong in one.

``python -m tests.scheduler.series.year FOLDER`` prints its table and writes its pictures there.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

from scheduler.errors import ClusterError
from scheduler.lock_format import Versions
from scheduler.series.closing import Done
from scheduler.series.page import render
from scheduler.series.records import STAMP, from_stamp
from scheduler.series.runner import RunEnd
from scheduler.series.schedule_file import Schedule
from scheduler.series.trend import read_trend
from scheduler.stop import StopSignal
from tests.scheduler.manifest.builders import write_world
from tests.scheduler.series.brute import dues
from tests.scheduler.series.builders import schedule, utc
from tests.scheduler.series.memory import MemoryStore
from tests.scheduler.series.world import Clock, Crash, FakeDoor, World
from workers.contract.outcome import Cause
from workers.storage import Store

BEGIN, END = utc(2026, 1, 1), utc(2027, 1, 1)
SEED = 1

CRASHES = {date(2026, 1, 20), date(2026, 4, 11), date(2026, 6, 7), date(2026, 10, 25)}
"""The process dies in the first run of that night; another machine takes it up."""
LONG = date(2026, 2, 10)
"""This run takes 25 hours: the next night is skipped."""
HANGS = date(2026, 8, 5)
"""This run never ends but by its deadline, two days later; the nights until then are skipped."""
SKIPPED = {LONG + timedelta(days=1), HANGS + timedelta(days=1), HANGS + timedelta(days=2)}
ASLEEP = (utc(2026, 7, 14, 12), utc(2026, 7, 19, 9))
"""No machine is there; the last night of it is caught up, and so is the Sunday's weekly run."""
BROKEN_NIGHTS = {date(2026, 9, 1), date(2026, 9, 2), date(2026, 9, 3)}
"""Containers are lost in every try."""
BROKEN_SUNDAY = date(2026, 11, 8)
"""Ray does not start, five times."""
VERSION_CHANGES = utc(2026, 5, 20)
"""Another version of Apiary from here on."""

WORSE_WEEKS = (date(2026, 4, 26), date(2026, 6, 21))
"""The workflow rate falls by 25 points."""
LOST = (date(2026, 4, 10), date(2026, 4, 24))
"""Behaviour task-01 is not kept at all."""
WEAK = (date(2026, 10, 1), date(2026, 10, 31))
"""Behaviour task-02 is kept in three of ten attempts."""

NIGHTLY = """\
overlap: skip
catch_up: last
catch_up_within: 12h
deadline: 2d
"""
WEEKLY = """\
overlap: queue
catch_up: last
catch_up_within: 1d
deadline: 1d
"""


@dataclass
class Year:
    """The year as it came out."""

    world: World
    fates: dict[str, dict[str, str]] = field(default_factory=dict)


def simulate(folder: Path, store: Store) -> Year:
    """Runs the year; the clock is moved by hand, and the sweeps are simulated."""
    write_world(folder)
    nightly = schedule(folder, NIGHTLY, series="nightly")
    weekly = schedule(folder, WEEKLY, series="weekly", cron='"0 4 * * 0"')
    clock = Clock(BEGIN)
    world = World(store, clock, (nightly, weekly), _Door(store, clock))
    runner = world.runner()
    while clock.now < END:
        try:
            runner.tick()
        except Crash:
            runner = world.runner()  # another machine, which waits until the first is silent
            runner.tick()
            clock.pass_time(seconds=45)
            continue
        wake = runner.next_at()
        assert wake is not None and wake > clock.now
        if ASLEEP[0] <= wake < ASLEEP[1]:
            wake = ASLEEP[1]
        clock.pass_time(seconds=(min(wake, END) - clock.now).total_seconds())
    return Year(world, {each.series: world.fates(each.series) for each in world.schedules})


class _Door(FakeDoor):
    """Two series with their tasks, and what befalls their runs."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock, outcome=self._attempt, changes=_version)
        self.during = self._befalls
        self._source = random.Random(SEED)
        self._rates = [self._source.uniform(0.45, 0.95) for _ in range(10)]

    def __call__(self, schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd:
        nightly = schedule.series == "nightly"
        self.regression, self.workflow = (6, 0) if nightly else (0, 10)
        return super().__call__(schedule, due, stop)

    def _befalls(self, schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd | None:
        day, first = _day(schedule, due), self.begun.count((schedule.series, due)) == 1
        if schedule.series == "weekly":
            if day == BROKEN_SUNDAY:
                raise ClusterError("Ray did not start")
            return self._takes(stop, hours=4)
        if day in CRASHES and first:
            raise Crash
        if day == HANGS:
            return self._takes(stop, hours=1000)
        return self._takes(stop, hours=25 if day == LONG else 2)

    def _takes(self, stop: StopSignal, hours: int) -> RunEnd | None:
        assert self.keep is not None
        for _ in range(hours):
            self.clock.pass_time(hours=1)
            self.keep()
            if stop.cancelling:
                return RunEnd("interrupted", "stopped")
        return None

    def _attempt(self, schedule: Schedule, due: datetime, task: str, index: int) -> Cause:
        day, number = _day(schedule, due), int(task.removeprefix("task-"))
        if schedule.series == "weekly":
            rate = self._rates[number] - (0.25 if _within(day, WORSE_WEEKS) else 0.0)
        else:
            if day in BROKEN_NIGHTS:
                return Cause.CONTAINER_LOST
            rate = 0.98
            if number == 1 and _within(day, LOST):
                rate = 0.0
            if number == 2 and _within(day, WEAK):
                rate = 0.3
        return Cause.NONE if self._source.random() < rate else Cause.WRONG


def _day(schedule: Schedule, due: datetime) -> date:
    return schedule.cron.wall(due).date()


def _within(day: date, span: tuple[date, date]) -> bool:
    return span[0] <= day < span[1]


def _version(due: datetime) -> dict[str, object]:
    version = "1.1.0" if due >= VERSION_CHANGES else "1.0.0"
    named = {"apiary": version, "python": "3", "ray": None, "docker": None, "nostr_sdk": None}
    return {"versions": Versions.model_validate(named)}


def expected(schedules: tuple[Schedule, ...]) -> Iterator[tuple[str, str, str]]:
    """(series, stamp, ``run``, ``skipped`` or ``missed``) of every due time, by the calendar."""
    for each in schedules:
        for due in dues(each.cron.expression, each.cron.zone, BEGIN, END):
            day, fate = _day(each, due), "run"
            if each.series == "nightly":
                if day in SKIPPED:
                    fate = "skipped"
                if ASLEEP[0] <= due < ASLEEP[1] - timedelta(hours=12):
                    fate = "missed"
            yield each.series, f"{due:{STAMP}}", fate


def table(year: Year) -> Iterator[str]:
    """Both series by month."""
    names = (
        "runs",
        "pass",
        "inconclusive",
        "regression",
        "outage",
        "deadline",
        "skipped",
        "missed",
    )
    yield f"{'':<16}" + "".join(f"{name:>13}" for name in (*names, "events"))
    for series, fates in year.fates.items():
        trend = {
            record.sweep.rpartition("-")[2]: record
            for record in read_trend(year.world.store, series)
        }
        total: Counter[str] = Counter()
        for month in range(1, 13):
            counts: Counter[str] = Counter()
            events: Counter[str] = Counter()
            for stamp, fate in fates.items():
                if from_stamp(stamp).month != month:
                    continue
                counts["pass" if fate == "baseline" else fate] += 1
                counts["runs"] += fate not in ("skipped", "missed")
                for test in trend[stamp].judgement.tests if stamp in trend else ():
                    events[test.event] += bool(test.event)
            total += counts
            told = ", ".join(f"{count} {name}" for name, count in events.items() if count)
            yield _line(f"{series} {month:02}", [counts[name] for name in names], told)
        yield _line(f"{series}, year", [total[name] for name in names], "")


def _line(head: str, counts: list[int], told: str) -> str:
    return f"{head:<16}" + "".join(f"{count or '·':>13}" for count in counts) + f"  {told}"


def notable(done: list[Done]) -> Iterator[str]:
    """What a year of notices says, the first two lines of each."""
    for each in done:
        if each.record.judgement.outcome in ("outage", "deadline") or any(
            test.event for test in each.record.judgement.tests
        ):
            yield "  ".join(each.text.splitlines()[:2])


if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        simulated = simulate(Path(scratch), MemoryStore())
    for name in simulated.fates:
        trend = read_trend(simulated.world.store, name)
        (place / f"{name}.html").write_text(render(name, trend), "utf-8")
    sys.stdout.write("\n".join([*table(simulated), "", *notable(simulated.world.done)]) + "\n")
