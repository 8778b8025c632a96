"""Series in a store with a clock of their own, and sweeps simulated at the driver's door."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from scheduler.lock import lock_key
from scheduler.series.closing import Done
from scheduler.series.ledger import Ledger, sweep_id
from scheduler.series.records import written
from scheduler.series.runner import RunEnd, Runner
from scheduler.series.schedule_file import Schedule
from scheduler.stop import StopSignal
from tests.scheduler.report.generated import make_lock, write
from workers.contract.outcome import Cause
from workers.storage import Store, open_store

Outcome = Callable[[Schedule, datetime, str, int], Cause]
"""(schedule, due time, bare task name, index of the attempt) to how the attempt ends."""


class Crash(BaseException):
    """The process is gone: nothing after it is done."""


@dataclass
class Clock:
    """Wall and monotonic time, moved by hand."""

    now: datetime
    since_start: float = 0.0

    def wall(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return self.since_start

    def pass_time(self, **length: float) -> None:
        step = timedelta(**length)
        self.now += step
        self.since_start += step.total_seconds()

    def step_to(self, moment: datetime) -> None:
        """The wall clock is set; no time passes."""
        self.now = moment


def passes(schedule: Schedule, due: datetime, task: str, index: int) -> Cause:
    return Cause.NONE


@dataclass
class FakeDoor:
    """Writes what a sweep would have left in the store."""

    store: Store
    clock: Clock
    outcome: Outcome = passes
    during: Callable[[Schedule, datetime, StopSignal], RunEnd | None] = lambda s, d, stop: None
    """Called between lock and results; may raise, or say how the sweep ends without them."""
    regression: int = 2
    workflow: int = 0
    attempts: int = 3
    keep: Callable[[], None] | None = None
    """Does once what the thread does that keeps a run: set by ``World.runner``."""
    begun: list[tuple[str, datetime]] = field(default_factory=list)
    changes: Callable[[datetime], dict[str, object]] = lambda due: {}
    """Of the lock."""

    def __call__(self, schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd:
        self.begun.append((schedule.series, due))
        lock = make_lock(
            conditions=1,
            regression=self.regression,
            workflow=self.workflow,
            attempts=self.attempts,
            name=schedule.series,
            started_at=written(due),
            **self.changes(due),
        )
        assert lock.sweep == sweep_id(schedule, due)
        self.store.create(lock_key(lock.sweep, 1), lock.to_json().encode())
        end = self.during(schedule, due, stop)
        if end is not None:
            return end
        if stop.cancelling:
            return RunEnd("interrupted", "stopped")
        for cell in lock.cells:
            for index in range(cell.attempts):
                name = cell.task.name.rpartition("/")[2]
                cause = self.outcome(schedule, due, name, index)
                for number in range(1, 4):
                    if write(self.store, lock, cell.task, cell.condition, index, number, cause):
                        break
        return RunEnd("settled")


@contextmanager
def _by_hand(
    ledger: Ledger,
    due: datetime,
    number: int,
    stop: StopSignal,
    look: Callable[[], None],
    is_late: Callable[[], bool],
    door: FakeDoor,
) -> Iterator[None]:
    """Beats, looks and heeds when the door says so; time passes by hand alone."""
    beats = itertools.count(1)

    def keep() -> None:
        ledger.beat(due, number, next(beats))
        if is_late():
            ledger.ask_to_end(due, "deadline")
        look()
        if ledger.asked_to_end(due):
            stop.request()
            stop.request()

    ledger.beat(due, number, next(beats))
    door.keep = keep
    yield


@dataclass
class World:
    """Schedulers of some series on one store."""

    store: Store
    clock: Clock
    schedules: tuple[Schedule, ...]
    door: FakeDoor
    notes: list[str] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    operator: StopSignal = field(default_factory=StopSignal)

    def runner(self, clock: Clock | None = None) -> Runner:
        """One more machine."""
        used = clock or self.clock
        return Runner(
            self.store,
            self.schedules,
            self.door,
            environment={},
            wall=used.wall,
            monotonic=used.monotonic,
            operator=self.operator,
            note=self.notes.append,
            after_run=self.done.append,
            keep=functools.partial(_by_hand, door=self.door),
        )

    def fates(self, series: str) -> dict[str, str]:
        """Stamp of every due time to its fate, and of runs to what they came to."""
        found = {}
        prefix = f"series/{series}/runs/"
        for key in self.store.keys(prefix):
            due, _, name = key.removeprefix(prefix).partition("/")
            from scheduler.series.records import Fate, RunOver

            if name == "fate.json":
                found.setdefault(due, Fate.from_json(self.store.get(key), key).what)
            if name == "end.json":
                found[due] = RunOver.from_json(self.store.get(key), key).outcome
        return found


def make(folder: Path, now: datetime, *schedules: Schedule, **door: object) -> World:
    """A world whose store is a folder."""
    store = open_store(f"file://{folder / 'store'}")
    clock = Clock(now)
    return World(store, clock, schedules, FakeDoor(store, clock, **door))  # type: ignore[arg-type]
