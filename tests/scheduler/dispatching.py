"""A small sweep with everything that its dispatcher is given."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from scheduler.dispatch import Dispatcher, Pauses
from scheduler.queue import WorkQueue
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd
from tests.scheduler import builders
from tests.scheduler.fakes import FakeNode, FakeObserver, FakeRecords, FakeSource

QUICK = Pauses(poll=0.02, answer=0.05, tick=0.005, view=0.02, find=0.01, no_node=0.5, cancel=1.0)
TERM_S = 15.0
SHORT_TERM_S = 0.4
"""Where leases are to expire; a machine under load may lose others in that time too."""


class Sweep:
    """A small sweep and everything that its dispatcher is given."""

    def __init__(self, k: int = 5, *, generation: int = 1, **limits: Any) -> None:
        self.cells = builders.cells(conditions=2, tasks=2)
        self.attempts = builders.attempts(self.cells, k)
        self.spec = builders.sweep_spec(
            limits=builders.limits(**{"lease_term_s": TERM_S, **limits})
        )
        self.generation = generation
        self.queue = WorkQueue(generation, self.spec.limits, grace_s=0.05)
        for each in self.attempts:
            self.queue.enqueue(
                each.attempt,
                index=each.index,
                cell=each.cell,
                condition=self.cells[each.cell].condition.condition,
            )
        self.records = FakeRecords()
        self.observer = FakeObserver()
        self.stop = StopSignal()

    async def run(
        self, *nodes: FakeNode, source: Any = None, pauses: Pauses = QUICK, newer: Any = None
    ) -> SweepEnd:
        """Runs it; every node's trials are ended afterwards."""
        dispatcher = Dispatcher(
            self.spec,
            self.cells,
            self.queue,
            self.records,
            source or FakeSource(nodes),
            self.observer,
            self.stop,
            generation=self.generation,
            newer=newer,
            pauses=pauses,
        )
        try:
            async with asyncio.timeout(20.0):
                return await dispatcher.run()
        finally:
            for node in nodes:
                await node.node.close(0.0)

    def assert_complete(self) -> None:
        """Every attempt is committed once, and the observer heard of each verdict once."""
        assert set(self.records.committed) == {each.attempt for each in self.attempts}
        heard = Counter(r.attempt for r in self.observer.records if r.verdict != "invalid")
        assert heard == Counter(each.attempt for each in self.attempts)
        assert self.queue.settled


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())
