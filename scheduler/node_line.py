"""The driver's end of one node's long poll: orders out, progress in. No waiting here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler.queue import WorkQueue
from scheduler.recovery import Recovery
from scheduler.stop import StopSignal
from workers.contract.outcome import Cause
from workers.contract.report import Orders, Progress
from workers.contract.spec import CellSpec, Lease

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
        stop: StopSignal,
        clock: Callable[[], float],
    ) -> None:
        """Knows nothing of the node yet: the first orders hold no lease and ask what is free."""
        self.name = name
        self.answered_at = clock()
        """When the node last answered, on the driver's clock."""
        self.draining = ""
        """Why the node takes no leases, as it said last."""
        self._generation = generation
        self._cells = cells
        self._queue = queue
        self._recovery = recovery
        self._stop = stop
        self._clock = clock
        self._greeted = False
        self._free = 0
        self._received = 0
        self._cells_there: set[str] = set()
        self._unconfirmed: tuple[Lease, ...] = ()
        """Sent with orders that were never answered: they may have arrived or not."""

    def orders(self, poll_s: float) -> Orders:
        """The next orders; they renew the node's leases, and must be sent at once."""
        now = self._clock()
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
            wait_s=self._wait_s(poll_s, now, len(leases)),
        )

    def take(self, orders: Orders, progress: Progress) -> None:
        """The node's answer to these orders."""
        now = self._clock()
        self.answered_at = now
        self.draining = progress.draining
        self._greeted = True
        self._free = progress.free_slots
        self._received = progress.number
        self._cells_there.update(orders.cells)
        self._unconfirmed = ()
        for record in progress.ended:
            if self._queue.ended(record, now):
                self._recovery.ended(record)
        self._queue.started(self.name, progress.running)
        self._account(progress)
        for record in progress.late:
            self._recovery.late(record)

    def _account(self, progress: Progress) -> None:
        """Every lease that the node was given runs, or has ended, or is not there any more."""
        held = self._queue.held(self.name)
        missing = [attempt for attempt in held if attempt not in progress.running]
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
        if self.draining or room <= 0:
            return []
        return self._queue.lease(self.name, room, now)

    def _wait_s(self, poll_s: float, now: float, leases: int) -> float:
        if not self._greeted:
            return 0.0
        due = self._queue.next_due()
        if due is None or self._free <= leases:
            return poll_s
        return min(poll_s, max(SHORTEST_POLL_S, due - now))
