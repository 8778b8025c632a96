"""The driver's end of one node's long poll: orders out, progress in. No waiting here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from scheduler.clocks import read_clock
from scheduler.lending import Lender
from scheduler.manifest import SweepBudget
from scheduler.permits import ProviderControl
from scheduler.queue import WorkQueue
from scheduler.recovery import Recovery
from scheduler.stop import Stop
from scheduler.tail import Pace
from scheduler.view import NodeView
from workers.contract.outcome import Cause, Verdict
from workers.contract.report import Orders, Progress, RunningTry
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Epoch, Lease

LEASES_AT_ONCE = 500
"""Leases in one set of orders."""

SHORTEST_POLL_S = 0.05


class NodeLine:
    """What the driver knows of one node, and the exchange of words with it."""

    def __init__(
        self,
        name: str,
        generation: int,
        cells: Mapping[str, CellSpec],
        queue: WorkQueue,
        recovery: Recovery,
        stop: Stop,
        clock: Callable[[], float],
        *,
        may_lease: Callable[[], bool] = lambda: True,
        lender: Lender | None = None,
        providers: ProviderControl | None = None,
        wall: Callable[[], float] = time.time,
        metrics: str = "",
        watched: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """Knows nothing of the node yet: the first orders hold no lease and ask what is free."""
        self.name = name
        self.answered_at = clock()
        """When the node last answered, on the driver's clock."""
        self.draining = ""
        """Why the node takes no leases, as it said last."""
        self.adopted = 0
        """Tries of earlier drivers that it ran when it answered first."""
        self.skew_s: float | None = None
        """How far its wall clock is ahead of ours; None: by too little to matter."""
        self.pace = Pace()
        """How quick it is, as its trials show."""
        self._generation = generation
        self._cells = cells
        self._queue = queue
        self._recovery = recovery
        self._stop = stop
        self._clock = clock
        self._may_lease = may_lease
        self._lender = lender or Lender(SweepBudget())
        self._providers = providers or ProviderControl({}, clock)
        self._wall = wall
        self._metrics = metrics
        self._watched = watched
        self.running: tuple[RunningTry, ...] = ()
        """What it runs, as it said last."""
        self._greeted = False
        self._asked_at = clock()
        self._free = 0
        self._received = 0
        self._cells_there: set[str] = set()
        self._unconfirmed: tuple[Lease, ...] = ()
        """Sent with orders that were never answered: they may have arrived or not."""

    @property
    def view(self) -> NodeView:
        """The node, as it said last."""
        return NodeView(self.name, len(self.running), self._free, self.draining, self._metrics)

    def orders(self, poll_s: float) -> Orders:
        """The next orders; they renew the node's leases, and must be sent at once."""
        now = self._asked_at = self._clock()
        self._queue.renew(self.name, now)
        leases = () if self._stop.draining else (*self._still_held(), *self._new_leases(now))
        self._unconfirmed = leases
        return Orders(
            generation=self._generation,
            received=self._received,
            leases=leases,
            cells={
                lease.cell: self._cells[lease.cell]
                for lease in leases
                if lease.cell not in self._cells_there
            },
            stop="cancel" if self._stop.cancelling else "no",
            wait_s=self._wait_s(self._providers.poll_s(poll_s), now, len(leases)),
            clock_skew_s=self.skew_s,
            allowance=self._lender.lend(self.name, gives_work=bool(leases)),
            budget_spent=self._lender.is_over,
            watched=self._watched(),
            permits=self._providers.lend(self.name),
        )

    def take(self, orders: Orders, progress: Progress) -> None:
        """The node's answer to these orders."""
        now = self._clock()
        self.answered_at = now
        self.draining = progress.draining
        self._read_clock(progress, now)
        self._lender.heard(self.name, progress)
        self._providers.heard(self.name, progress)
        self._free = progress.free_slots
        self.running = progress.running
        self.pace.slots = 0 if progress.draining else progress.free_slots + len(progress.running)
        self._received = progress.number
        self._cells_there.update(orders.cells)
        self._unconfirmed = ()
        for record in progress.ended:
            if self._queue.ended(record, now):
                self._recovery.ended(record)
                if record.verdict is not Verdict.INVALID:
                    self.pace.ended(sum(record.phase_seconds.values()))
            elif self._may_be_missed(record):
                self._recovery.missed(self.name, record)
        if not self._greeted:
            self._adopt(progress, now)
        self._greeted = True
        self._queue.started(self.name, (each.attempt for each in progress.running))
        self._account(progress)
        for record in progress.late:
            self._recovery.late(record)

    def _read_clock(self, progress: Progress, now: float) -> None:
        if progress.clock_s is None:
            return
        reading = read_clock(
            progress.clock_s,
            our_s=self._wall(),
            took_s=now - self._asked_at,
            held_s=progress.held_s,
        )
        self.skew_s = reading.skew_s

    def _adopt(self, progress: Progress, now: float) -> None:
        """What it runs was leased by a driver that is gone: of an attempt the last try."""
        tries = {
            each.attempt: each.epoch
            for each in sorted(progress.running, key=_by_epoch)
            if each.epoch.generation < self._generation
        }
        self.adopted = len(self._queue.adopt(self.name, tries, now))

    def _may_be_missed(self, record: TryRecord) -> bool:
        """Whether an earlier driver's try may have ended before this one was there."""
        is_earlier = record.epoch[0] < self._generation
        return not self._greeted and is_earlier and record.verdict is Verdict.INVALID

    def _account(self, progress: Progress) -> None:
        """Every lease that the node was given runs, or has ended, or is not there any more."""
        held = self._queue.held(self.name)
        running = {(each.attempt, each.epoch) for each in progress.running}
        missing = [attempt for attempt in held if (attempt, held[attempt]) not in running]
        if progress.draining:
            missing = [a for a in missing if not self._queue.given_back(a, held[a])]
        forgotten = self._queue.forgotten(self.name, missing)
        self._recovery.lost(
            forgotten,
            Cause.LEASE_EXPIRED,
            f"node {self.name} neither runs the try nor has reported its end",
        )

    def _still_held(self) -> tuple[Lease, ...]:
        held = self._queue.held(self.name)
        return tuple(each for each in self._unconfirmed if held.get(each.attempt) == each.epoch)

    def _new_leases(self, now: float) -> list[Lease]:
        room = min(LEASES_AT_ONCE, self._free - len(self._unconfirmed))
        if self.draining or room <= 0 or not self._may_lease() or self._lender.is_over:
            return []
        return self._queue.lease(self.name, room, now)

    def _wait_s(self, poll_s: float, now: float, leases: int) -> float:
        if not self._greeted:
            return 0.0
        due = self._queue.next_due()
        if due is None or self._free <= leases:
            return poll_s
        return min(poll_s, max(SHORTEST_POLL_S, due - now))


def _by_epoch(running: RunningTry) -> Epoch:
    return running.epoch
