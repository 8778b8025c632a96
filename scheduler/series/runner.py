"""What a scheduler does: due times looked at, runs started, taken up again and ended; blocks.

Any number of schedulers on any number of machines may do this at once. One of them runs one sweep
at a time, so that runs do not disturb each other; what else is due meanwhile is noted as seen, and
waits for it or is taken by another machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from scheduler.clocks import skew_text
from scheduler.errors import DriverError
from scheduler.lock import LockError
from scheduler.manifest.faults import ManifestError
from scheduler.series.closing import Closing, Done
from scheduler.series.keeper import Keeper, RunStop, deadline_of
from scheduler.series.ledger import Ledger
from scheduler.series.planner import (
    MOST_CLAIMS,
    Decision,
    History,
    Timetable,
    decide,
    next_at,
    timetable_of,
)
from scheduler.series.records import stamp
from scheduler.series.schedule_file import Schedule
from scheduler.stop import Stop, StopSignal
from scheduler.store_calls import store_reading
from workers.container.interface import ContainerError
from workers.contract.base import FormatError
from workers.exposition import MetricsAddressError
from workers.storage.interface import Store, StoreError

MOST_SKEW_S = 120.0
"""A scheduler whose clock is certainly further off than this from the store's starts nothing."""


@dataclass(frozen=True)
class RunEnd:
    """How the sweep of a run ended."""

    state: Literal["settled", "interrupted", "infrastructure", "budget"]
    reason: str = ""


class RunDoor(Protocol):
    """Runs the sweep of a due time, or goes on with it, until it ends; as ``apiary run`` does."""

    def __call__(self, schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd:
        """Blocks until the sweep is settled, stopped, or cannot go on."""
        ...


class SchedulerClockError(DriverError):
    """The clock by which runs would be started is wrong."""


Keep = Callable[
    [Ledger, datetime, int, StopSignal, Callable[[], None], Callable[[], bool]],
    AbstractContextManager[object],
]
"""Opens what keeps a run alive; see ``Keeper``."""


def keeper(
    ledger: Ledger,
    due: datetime,
    number: int,
    stop: StopSignal,
    look: Callable[[], None],
    is_late: Callable[[], bool],
) -> Keeper:
    """A thread of its own."""
    return Keeper(ledger, due, number, stop, look=look, is_late=is_late)


@dataclass
class Line:
    """One series, as a scheduler has it."""

    ledger: Ledger
    table: Timetable
    closing: Closing

    @property
    def schedule(self) -> Schedule:
        """The checked schedule file."""
        return self.ledger.schedule


class Runner:
    """A scheduler of several series."""

    def __init__(
        self,
        store: Store,
        schedules: Sequence[Schedule],
        door: RunDoor,
        *,
        environment: Mapping[str, str],
        wall: Callable[[], datetime],
        monotonic: Callable[[], float],
        operator: Stop,
        note: Callable[[str], None],
        after_run: Callable[[Done], None] = lambda done: None,
        keep: Keep = keeper,
    ) -> None:
        """Starts nothing yet.

        Args:
            store: of all the series.
            schedules: one for each.
            door: runs a sweep.
            environment: has the secrets of webhooks, by name.
            wall: the clock by which things are due.
            monotonic: seconds, for waiting.
            operator: whose wish ends all of it.
            note: told in sentences what happens.
            after_run: told of every run that has ended.
            keep: what keeps a run alive.
        """
        self._store = store
        self._door = door
        self._wall = wall
        self._operator = operator
        self._note = note
        self._after_run = after_run
        self._keep = keep
        self.faults: list[str] = []
        """Series that the last tick left alone, and why."""
        self.lines = [
            Line(
                Ledger(store, each, wall=wall, monotonic=monotonic),
                timetable_of(each),
                Closing(store, each, environment, wall),
            )
            for each in schedules
        ]

    def tick(self) -> list[Done]:
        """Runs what is due, in turn over the series, until nothing is; gives what ended.

        A series with a record that cannot be read is left alone, and named in ``faults``.

        Raises:
            SchedulerClockError: this machine's clock is wrong.
            StoreError: the store refused.
        """
        self._check_clock()
        self.faults.clear()
        done: list[Done] = []
        waiting = list(self.lines)
        while waiting and not self._operator.draining:
            line = waiting.pop(0)
            try:
                ended = self._step(line)
            except FormatError as error:
                # The other series go on.
                self.faults.append(f"{line.schedule.series}: {error}")
                self._note(f"! {self.faults[-1]}")
                continue
            if ended is not None:
                done += ended
                waiting.append(line)
        return done

    def next_at(self) -> datetime | None:
        """When the clock alone may bring something to do; null: never."""
        now = self._wall()
        times = [next_at(line.table, history, now) for line, history in self._readable()]
        return min((at for at in times if at is not None), default=None)

    def undecided(self) -> list[tuple[str, datetime]]:
        """Runs of other machines of which it is not known yet whether their runner lives."""
        found = []
        for line, history in self._readable():
            held = history.held
            if held is None or not held.alive:
                continue
            if not line.ledger.is_proved(held.due, held.claims):
                found.append((line.schedule.series, held.due))
        return found

    def attend(self) -> None:
        """Looks at everything that is due while this scheduler is busy, and starts nothing.

        Raises:
            StoreError: the store refused.
        """
        for line, history in self._readable():
            decision = decide(line.table, history, self._wall())
            self._settle(line, history, decision)
            if decision.start is not None and decision.start not in history.seen:
                line.ledger.see(decision.start)

    def _readable(self) -> Iterator[tuple[Line, History]]:
        """The series whose records can be read; ``tick`` names the others."""
        for line in self.lines:
            try:
                history = line.ledger.history()
            except FormatError:
                continue
            yield line, history

    def _step(self, line: Line) -> list[Done] | None:
        """Does what a series needs now; None: it need not be asked again."""
        history = line.ledger.history()
        decision = decide(line.table, history, self._wall())
        self._settle(line, history, decision)
        held = history.held
        done: list[Done] = []
        if decision.give_up is not None and held is not None:
            number = held.claims + 1
            if not line.ledger.claim(held.due, number):
                return None
            why = {
                "deadline": f"it was not done within {line.schedule.file.deadline} of its start",
                "cancelled": "a later run took its place",
                "outage": f"{held.claims} runners began it, and none could go on",
            }[decision.give_up]
            done.append(self._finish(line, held.due, decision.give_up, why, number))
        if decision.resume is not None and held is not None:
            number = held.claims + 1
            if line.ledger.claim(held.due, number):
                self._note(f"{line.schedule.series}: goes on with {stamp(held.due)}")
                done += self._run(line, held.due, number, held.began_at)
                return done
            return None
        if decision.start is not None:
            due = decision.start
            if line.ledger.decide(due, "run") and line.ledger.claim(due, 1):
                self._note(f"{line.schedule.series}: starts {stamp(due)}")
                done += self._run(line, due, 1, self._wall())
                return done
            return done or None
        return done or None

    def _settle(self, line: Line, history: History, decision: Decision) -> None:
        """All of a decision that starts nothing."""
        if decision.cancel is not None and history.held is not None:
            line.ledger.ask_to_end(history.held.due, decision.cancel)
        fates: Iterator[tuple[datetime, Literal["missed", "skipped"]]] = itertools.chain(
            ((due, "missed") for due in decision.missed),
            ((due, "skipped") for due in decision.skipped),
        )
        # By time: a due time before one that has a fate is not looked at again.
        settled = [each for each in sorted(fates) if line.ledger.decide(*each)]
        for due, what in settled:
            self._note(f"{line.schedule.series}: {stamp(due)} is {what}")
        told: tuple[Literal["missed", "skipped"], ...] = ("missed", "skipped")
        for kind in told:
            # Together: a machine that wakes up after a week has one thing to say.
            if dues := [due for due, what in settled if what == kind]:
                line.closing.not_run(dues, kind)
        for due in decision.see:
            line.ledger.see(due)

    def _run(self, line: Line, due: datetime, number: int, began_at: datetime) -> list[Done]:
        stop = RunStop(self._operator)
        is_late = deadline_of(began_at, line.table.deadline, self._wall)
        end: RunEnd | None = None
        with self._keep(line.ledger, due, number, stop, self.attend, is_late):
            try:
                end = self._door(line.schedule, due, stop)
            except (
                ContainerError,
                DriverError,
                FormatError,
                LockError,
                ManifestError,
                MetricsAddressError,
                StoreError,
            ) as error:
                end = RunEnd("infrastructure", f"{type(error).__name__}: {error}")
        if end.state != "settled" and line.ledger.is_taken_over(due, number):
            self._note(f"{line.schedule.series}: {stamp(due)} was taken over by another scheduler")
            return []
        why = line.ledger.asked_to_end(due) if end.state == "interrupted" else None
        if why is not None:
            words = {"deadline": "its deadline has passed", "cancelled": "a later run is due"}
            return [self._finish(line, due, why, words[why], number)]
        if end.state == "interrupted":
            line.ledger.beat(due, number, LAST_BEAT, "interrupted")
            self._note(f"{line.schedule.series}: {stamp(due)} is interrupted, and can be taken up")
            return []
        if end.state == "infrastructure" and number < MOST_CLAIMS and not is_late():
            line.ledger.beat(due, number, LAST_BEAT, "infrastructure")
            self._note(f"{line.schedule.series}: {stamp(due)} could not go on: {end.reason}")
            return []
        return [self._finish(line, due, end.state, end.reason, number)]

    def _finish(self, line: Line, due: datetime, state: str, reason: str, number: int) -> Done:
        done = line.closing.close(due, state, reason)
        line.ledger.end(due, done.record.judgement.outcome, reason, number, done.notices)
        for text in line.closing.clean():
            self._note(text)
        self._after_run(done)
        return done

    def _check_clock(self) -> None:
        reading = store_reading(self._store)
        if reading is None or abs(reading.ahead_s) - reading.error_s <= MOST_SKEW_S:
            return
        raise SchedulerClockError(
            f"nothing is started: {skew_text('the clock of the store', round(reading.ahead_s, 1))}"
        )


LAST_BEAT = 2**53
"""Above every beat of a thread, which may write one more."""
