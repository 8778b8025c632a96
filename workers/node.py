"""Stage 5, node: Orders -> Lease.

A node takes leases, runs one trial for each beside the others in one event loop, and says how
each ended until the driver has acknowledged it. It knows neither Ray nor Docker: it is given
the function that runs a trial.

*Why it repeats itself:* the driver may lose an answer. Every answer has a number; what ended
stays in all of them until orders say that an answer holding it has arrived. Leases may arrive
twice too; a try that was taken once is never started again.
"""

from __future__ import annotations

import asyncio
import gc
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from workers.allowance import Purse
from workers.contract.outcome import Cause, Phase, outcome_of
from workers.contract.report import Orders, Progress, RunningTry
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Commit, TrialEnd, TrialFunction
from workers.contract.unfinished import unfinished_record
from workers.permits.node import NodePermits

TRIES_REMEMBERED = 20_000
"""Tries taken, remembered to refuse a lease that arrives again; the oldest are forgotten."""


class Tell(Protocol):
    """Says that something happened (``workers.journal.Journal.tell``)."""

    def __call__(self, event: str, text: str = "", **about: Any) -> None:
        """``about`` are fields of ``JournalLine``."""
        ...


def tell_nobody(event: str, text: str = "", **about: Any) -> None:
    """Where no journal is kept."""


class Node:
    """The trials of one sweep on one machine."""

    def __init__(
        self,
        name: str,
        sweep: str,
        slots: int,
        run_trial: TrialFunction,
        *,
        refusal: Callable[[], str] = lambda: "",
        fits: Callable[[Sequence[CellSpec]], int] | None = None,
        purse: Purse | None = None,
        permits: NodePermits | None = None,
        tell: Tell = tell_nobody,
        follow: Callable[[tuple[str, ...]], None] = lambda attempts: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Starts idle.

        Args:
            name: as records and labels carry it.
            sweep: the sweep's id.
            slots: trials at once.
            run_trial: runs one try to its end.
            refusal: why no more leases can be taken right now; empty if they can.
            fits: how many more trials may start beside those of these cells; null: as many as
                slots are free.
            purse: what its trials may spend; null: one of its own.
            permits: of its requests to providers; null: some of its own.
            tell: hears what happens, for the sweep's journal.
            follow: hears which attempts somebody follows; called with every orders.
            clock: monotonic seconds; leases are measured on it.
            wall: seconds since 1970; told to the driver, and never measured with.
        """
        self.name = name
        self.slots = slots
        """May be changed at any time; running trials are let be."""
        self.fits = fits or (lambda running: self.slots - len(running))
        """How many more trials may start; may be changed like ``slots``."""
        self.clock_skew_s: float | None = None
        """How far this machine's wall clock is ahead of the driver's, as the driver says."""
        self._sweep = sweep
        self._run_trial = run_trial
        self._refusal = refusal
        self.purse = purse or Purse()
        """What its trials may spend of the sweep's budget."""
        self._clock = clock
        self._wall = wall
        self._tell = tell
        self._follow = follow
        self._heard_at = clock()
        """When a driver last spoke, or a trial last ended."""
        self._generation = 0
        self._number = 0
        self._closing = ""
        self._cells: dict[str, CellSpec] = {}
        self._trials: dict[str, _Trial] = {}
        """Running trials by attempt and try."""
        self._unacknowledged: dict[str, _Report] = {}
        self._taken: OrderedDict[str, None] = OrderedDict()
        self._news = asyncio.Event()
        self.purse.on_want = self._news.set
        self._permits = permits or NodePermits()
        self._permits.on_news = self._news.set

    @property
    def generation(self) -> int:
        """The highest driver generation that it has heard of."""
        return self._generation

    @property
    def is_closing(self) -> bool:
        """Whether it takes no more leases, for good."""
        return bool(self._closing)

    @property
    def running(self) -> int:
        """Trials that run."""
        return len(self._trials)

    @property
    def idle_s(self) -> float:
        """Seconds since a driver last spoke to it and nothing ran on it."""
        return 0.0 if self._trials else self._clock() - self._heard_at

    async def exchange(self, orders: Orders) -> Progress:
        """Obeys orders and answers: at once if there is news, else after ``orders.wait_s``.

        Orders of an older driver than the node has seen change nothing, and the answer's
        generation tells that driver so. A newer driver takes over what runs: the leases stay
        what they were, valid ones are renewed and lapsed ones stay lapsed.
        """
        if orders.generation < self._generation:
            return self._stale_answer()
        arrived = self._heard_at = self._clock()
        if orders.generation > self._generation:
            # Answers given to another driver say nothing about what this one has received.
            self._generation = orders.generation
            self._tell("driver_heard", f"{len(self._trials)} trials run")
            self.purse.restart(self._trials.keys() | self._unacknowledged.keys())
            for report in self._unacknowledged.values():
                report.number = None
            if self._unacknowledged:
                self._news.set()
        else:
            self._acknowledged(orders.received)
        self._cells.update(orders.cells)
        self.clock_skew_s = orders.clock_skew_s
        self.purse.lend(orders.allowance, is_over=orders.budget_spent)
        self._permits.lend(orders.permits)
        self._follow(orders.watched)
        self._renew()
        if orders.stop == "cancel":
            self._cancel_all()
        elif not self._draining():
            self._take(orders.leases)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), orders.wait_s)
        return self._answer(arrived)

    async def close(self, timeout_s: float) -> None:
        """Takes no more leases, ends all trials, and waits for their teardown.

        A trial that does not end within ``timeout_s`` is abandoned: what it leaves is the
        reaper's.
        """
        self._closing = "the node is closing"
        self._news.set()
        self._cancel_all()
        tasks = [trial.task for trial in self._trials.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=timeout_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1.0)

    # Orders

    def _acknowledged(self, received: int) -> None:
        for key, report in list(self._unacknowledged.items()):
            if report.number is not None and report.number <= received:
                del self._unacknowledged[key]
        if not self._unacknowledged:
            self._news.clear()

    def _renew(self) -> None:
        now = self._clock()
        for trial in self._trials.values():
            # A lease that has lapsed stays so: the driver may have given the attempt away.
            if now < trial.deadline:
                trial.deadline = now + trial.lease.term_s

    def _cancel_all(self) -> None:
        if not all(trial.cancelled.is_set() for trial in self._trials.values()):
            self._tell("cancelled", f"{len(self._trials)} running trials are ended")
        for trial in self._trials.values():
            trial.cancelled.set()

    def _take(self, leases: tuple[Lease, ...]) -> None:
        for lease in leases:
            key = _key(lease.attempt, str(lease.epoch))
            cell = self._cells.get(lease.cell)
            if key in self._taken or cell is None or self._free() <= 0:
                continue
            self._taken[key] = None
            if len(self._taken) > TRIES_REMEMBERED:
                self._taken.popitem(last=False)
            trial = _Trial(lease, self._clock, self._tell)
            self._trials[key] = trial
            trial.start(self._run(key, cell, trial))

    def _free(self) -> int:
        """How many leases it would take now."""
        running = [self._cells[trial.lease.cell] for trial in self._trials.values()]
        return max(0, self.fits(running))

    def _draining(self) -> str:
        return self._closing or self._refusal()

    # Trials

    async def _run(self, key: str, cell: CellSpec, trial: _Trial) -> None:
        started_at = _now()
        try:
            end = await self._run_trial(cell, trial.lease, trial)
        except asyncio.CancelledError:
            end = self._broken(cell, trial.lease, started_at, Cause.CANCELLED, trial.phase, None)
        except Exception:  # noqa: BLE001 - the trial function promises an end; this is a bug of ours
            end = self._broken(
                cell,
                trial.lease,
                started_at,
                Cause.UNCLASSIFIED,
                trial.phase,
                traceback.format_exc(),
            )
        finally:
            self._trials.pop(key, None)
            self._heard_at = self._clock()
        self._unacknowledged[key] = _Report(end)
        self._news.set()
        self._tell(
            "trial_ended",
            f"{end.record.verdict}, {end.record.cause}, commit: {end.commit}",
            attempt=trial.lease.attempt,
            try_=str(trial.lease.epoch),
        )

    def _broken(
        self,
        cell: CellSpec,
        lease: Lease,
        started_at: str,
        cause: Cause,
        phase: Phase,
        trace: str | None,
    ) -> TrialEnd:
        detail = (
            "the node ended the trial before it could write its record"
            if trace is None
            else f"the trial function failed: {trace.strip().splitlines()[-1]}"
        )
        record = unfinished_record(
            outcome_of(cause, phase, detail),
            sweep=self._sweep,
            cell=cell,
            attempt=lease.attempt,
            index=lease.index,
            epoch=lease.epoch,
            node=self.name,
            started_at=started_at,
            ended_at=_now(),
            traceback=trace,
        )
        return TrialEnd(record.model_copy(update={"clock_skew_s": self.clock_skew_s}), Commit.NONE)

    # Answers

    def _answer(self, arrived: float) -> Progress:
        self._number += 1
        ended: list[TryRecord] = []
        superseded: list[str] = []
        late: list[TryRecord] = []
        for report in self._unacknowledged.values():
            if report.number is None:
                report.number = self._number
            match report.end.commit:
                case Commit.WRITTEN | Commit.NONE:
                    ended.append(report.end.record)
                case Commit.SUPERSEDED:
                    superseded.append(report.end.record.attempt)
                case Commit.LATE:
                    late.append(report.end.record)
        draining = self._draining()
        return Progress(
            node=self.name,
            number=self._number,
            generation=self._generation,
            ended=tuple(ended),
            superseded=tuple(superseded),
            late=tuple(late),
            running=tuple(
                RunningTry(attempt=t.lease.attempt, epoch=t.lease.epoch, phase=t.phase.value)
                for t in self._trials.values()
            ),
            free_slots=0 if draining else self._free(),
            draining=draining,
            clock_s=self._wall(),
            held_s=max(0.0, self._clock() - arrived),
            spent=self.purse.spent,
            ceiling=self.purse.ceiling,
            wants=self.purse.wants,
            accounts=self._permits.accounts(),
            endpoints=self._permits.endpoints(),
        )

    def _stale_answer(self) -> Progress:
        return Progress(
            node=self.name,
            number=0,
            generation=self._generation,
            free_slots=0,
            draining=f"driver generation {self._generation} has taken over",
        )


@dataclass
class _Report:
    """How a trial ended, and the first answer that said so."""

    end: TrialEnd
    number: int | None = None


class _Trial:
    """A running trial, and what it may ask of the node (``workers.contract.trial.Control``)."""

    def __init__(self, lease: Lease, clock: Callable[[], float], tell: Tell) -> None:
        self.lease = lease
        self._tell = tell
        self.cancelled = asyncio.Event()
        self.phase = Phase.PREPARE
        self.deadline = clock() + lease.term_s
        self.task: asyncio.Task[None]
        self._clock = clock

    def start(self, run: Coroutine[Any, Any, None]) -> None:
        """Runs it; the reference keeps the task from being collected."""
        self.task = asyncio.create_task(run)

    def lease_valid(self) -> bool:
        """Whether the lease's deadline is still ahead on the node's clock."""
        return self._clock() < self.deadline

    def entered(self, phase: Phase) -> None:
        """Remembers the phase for the next answer."""
        self.phase = phase
        lease = self.lease
        self._tell("phase", attempt=lease.attempt, phase=phase.value, try_=str(lease.epoch))


def settle_memory() -> None:
    """Takes all that is there now, and stays, out of Python's searches for cyclic garbage.

    With hundreds of trials beside it such a search holds up the event loop for a tenth of a
    second or two; without it, for half as long.
    """
    gc.collect()
    gc.freeze()


def _key(attempt: str, try_: str) -> str:
    return f"{attempt}/{try_}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
