"""Nodes, records and observers that do as they are told; our own interfaces only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from scheduler.errors import NodeGoneError, NodeLostError, NodeSilentError
from scheduler.view import SweepView
from tests.scheduler.builders import SWEEP, record
from workers.contract.outcome import Cause
from workers.contract.report import Orders, Progress
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.node import Node
from workers.storage.interface import StoreError


class FakeRecords:
    """The sweep's records in memory: what nodes commit, and what the driver writes."""

    def __init__(self) -> None:
        self.committed: dict[str, TryRecord] = {}
        self.finished: dict[str, TryRecord] = {}
        """Tries that wrote everything but the commit."""
        self.kept: list[TryRecord] = []
        self.twice: list[TryRecord] = []
        self.known: set[tuple[str, str]] = set()
        """Invalid tries that the driver read when it started."""
        self.index: list[str] = []
        self.indexed = 0
        self.down = False

    def commit(self, ended: TryRecord) -> Commit:
        """What a node does at the end of a try that counts."""
        if ended.attempt in self.committed:
            self.twice.append(ended)
            return Commit.SUPERSEDED
        self.committed[ended.attempt] = ended
        return Commit.WRITTEN

    async def recover(self, attempt: str) -> TryRecord | None:
        self._answer()
        if attempt not in self.committed and attempt in self.finished:
            self.committed[attempt] = self.finished[attempt]
        return self.committed.get(attempt)

    async def accept(self, ended: TryRecord) -> TryRecord:
        self._answer()
        return self.committed.setdefault(ended.attempt, ended)

    async def keep(self, ended: TryRecord) -> None:
        self._answer()
        self.kept.append(ended)

    def knows(self, attempt: str, try_: str) -> bool:
        return (attempt, try_) in self.known

    def counted(self, ended: TryRecord) -> bool:
        self.index.append(ended.attempt)
        return len(self.index) % 5 == 0

    async def write_index(self) -> None:
        self._answer()
        self.indexed = len(self.index)

    def _answer(self) -> None:
        if self.down:
            raise StoreError("the store is down")


class FakeObserver:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.views: list[SweepView] = []
        self.records: list[TryRecord] = []
        self.notes: list[str] = []

    def moved(self, view: SweepView) -> None:
        self.views.append(view)

    def ended(self, ended: TryRecord) -> None:
        self.records.append(ended)

    def note(self, text: str) -> None:
        self.notes.append(text)


class FakeNode:
    """A real node behind a line that loses, delays and dies on request."""

    def __init__(
        self,
        name: str,
        run: TrialFunction,
        slots: int = 4,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self.node = Node(name, SWEEP, slots, run, clock=clock, wall=wall)
        self.adopted = False
        self.metrics = f"{name}:9000"
        self.sent: list[Orders] = []
        self.dies_at: int | None = None
        """The exchange, from 0, at which it is dead."""
        self.gone_at: int | None = None
        """The exchange, from 0, from which on it is out of reach for ever, and runs on."""
        self.loses_answer: Callable[[int], bool] = lambda _: False
        self.loses_orders: Callable[[int], bool] = lambda _: False
        self.is_silent: Callable[[int], bool] = lambda _: False
        self.edit: Callable[[Progress], Progress] = lambda progress: progress

    @property
    def name(self) -> str:
        return self._name

    async def exchange(self, orders: Orders) -> Progress:
        number = len(self.sent)
        self.sent.append(orders)
        if self.dies_at is not None and number >= self.dies_at:
            await self.node.close(0.0)
            raise NodeLostError(self.name, "its process died")
        if self.gone_at is not None and number >= self.gone_at:
            raise NodeGoneError(self.name, "its machine is lost")
        if self.is_silent(number):
            raise NodeSilentError(self.name, "unreachable")
        if self.loses_orders(number):
            await asyncio.Event().wait()
        # As over a wire: nothing is shared between driver and node.
        answer = await self.node.exchange(Orders.from_json(orders.to_json(), "orders"))
        if self.loses_answer(number):
            await asyncio.Event().wait()
        return self.edit(Progress.from_json(answer.to_json(), "progress"))

    @property
    def taken(self) -> list[Lease]:
        """Every lease that was sent to it, repetitions included."""
        return [lease for orders in self.sent for lease in orders.leases]


class FakeSource:
    """Gives its nodes once, or in several helpings."""

    def __init__(self, *helpings: Sequence[FakeNode]) -> None:
        self._helpings = list(helpings)

    async def find(self) -> Sequence[FakeNode]:
        return self._helpings.pop(0) if self._helpings else ()


def passing(records: FakeRecords, node: str = "n1", seconds: float = 0.0) -> TrialFunction:
    """Trials that pass after some time, or end as cancelled."""
    return scripted(records, lambda *_: Cause.NONE, node, seconds)


def scripted(
    records: FakeRecords,
    cause_of: Callable[[CellSpec, Lease], Cause],
    node: str = "n1",
    seconds: float = 0.0,
) -> TrialFunction:
    """Trials that end for the cause that they are told, or as cancelled."""

    async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
        cause = cause_of(cell, lease)
        try:
            async with asyncio.timeout(seconds):
                await control.cancelled.wait()
            cause = Cause.CANCELLED
        except TimeoutError:
            pass
        ended = record(cell, lease, cause, node=node)
        if cause not in (Cause.NONE, Cause.WRONG):
            return TrialEnd(ended, Commit.NONE)
        if not control.lease_valid():
            records.finished[lease.attempt] = ended
            return TrialEnd(ended, Commit.LATE)
        return TrialEnd(ended, records.commit(ended))

    return run
