"""An endpoint goes down and comes back: ``python -m tests.scheduler.permits.outage`` tells what
happens. The driver's loop, its queue and the nodes are the real ones, in virtual time; trials ask
a simulated provider, think, and ask again.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.dispatch import Dispatcher, Pauses
from scheduler.queue import WorkQueue
from scheduler.stop import StopSignal
from tests.scheduler import builders
from tests.scheduler.fakes import FakeNode, FakeObserver, FakeRecords, FakeSource
from tests.scheduler.permits.providers import Provider
from tests.scheduler.permits.virtual import run_virtually
from tests.scheduler.permits.world import NAMES, endpoint
from workers.contract.outcome import Cause
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Commit, Control, TrialEnd
from workers.node import Node
from workers.permits.node import NodePermits

FALLS_S, RISES_S = 120.0, 300.0
REQUESTS = 5
REPEATS = 4
BEFORE_S, AFTER_S = 60.0, 170.0
"""Of the other endpoint's throughput: so long before the fall, and so long after it."""


@dataclass(frozen=True)
class Told:
    """What happened; seconds since the start."""

    parked_at: tuple[float, ...]
    back_at: tuple[float, ...]
    other_ratio: float
    """The other endpoint's requests a second during the outage over those before it."""
    lost_tries: int
    """Invalid ones."""
    leased_while_parked: int
    """Leases of its cells between parking and return."""
    state: str
    notes: tuple[str, ...]


class TimedObserver(FakeObserver):
    """Knows when it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []
        self._started = asyncio.get_running_loop().time()

    def note(self, text: str) -> None:
        super().note(text)
        self.times.append(asyncio.get_running_loop().time() - self._started)

    def when(self, words: str) -> tuple[float, ...]:
        """When something with these words was told."""
        return tuple(t for t, text in zip(self.times, self.notes, strict=True) if words in text)


class Outage:
    """Two conditions, each with an endpoint of its name, on three nodes."""

    def __init__(
        self,
        *,
        k: int = 400,
        slots: int = 20,
        seed: int = 1,
        down: Callable[[float], bool] = lambda s: FALLS_S <= s < RISES_S,
        cut_off: Callable[[str, float], bool] = lambda node, s: False,
        bad_agents: bool = False,
    ) -> None:
        loop = self.loop = asyncio.get_running_loop()
        self.random = random.Random(seed)
        self.cells = builders.cells(conditions=2, tasks=2)
        self.endpoints = {
            name: endpoint(base_url=f"http://{name}") for name in ("condition-0", "condition-1")
        }
        self.spec = builders.sweep_spec(endpoints=self.endpoints, limits=builders.limits(poison=99))
        self.providers = {
            "condition-0": Provider("bucket", down=down),
            "condition-1": Provider("bucket"),
        }
        self.cut_off = cut_off
        self.bad_agents = bad_agents
        self.started = loop.time()
        self.queue = WorkQueue(1, self.spec.limits)
        for each in builders.attempts(self.cells, k):
            condition = self.cells[each.cell].condition
            self.queue.enqueue(
                each.attempt,
                index=each.index,
                cell=each.cell,
                condition=condition.condition,
                endpoints=condition.endpoints,
            )
        self.records = FakeRecords()
        self.observer = TimedObserver()
        self.leased: list[tuple[float, str]] = []
        self.nodes = [self.node(name, slots) for name in NAMES]

    def node(self, name: str, slots: int) -> FakeNode:
        permits = NodePermits()
        permits.know(self.endpoints)

        async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            return await self.trial(name, permits, cell, lease, control)

        made = FakeNode(name, run, slots, clock=self.loop.time)
        made.node = Node(name, builders.SWEEP, slots, run, permits=permits, clock=self.loop.time)
        return made

    async def trial(
        self, node: str, permits: NodePermits, cell: CellSpec, lease: Lease, control: Control
    ) -> TrialEnd:
        """Five requests with thinking between them; a failed one is repeated four times."""
        name = cell.condition.condition
        self.leased.append((self.loop.time() - self.started, name))
        cause = Cause.NONE
        for _ in range(REQUESTS):
            await asyncio.sleep(self.random.expovariate(1 / 2.0))
            if not await self.answered(node, permits, name, f"{lease.attempt}/{lease.epoch}"):
                cause = Cause.PROVIDER_5XX
                break
        ended = builders.record(cell, lease, cause, node=node)
        if cause is not Cause.NONE:
            named = ended.model_copy(update={"endpoint": name})
            return TrialEnd(named, Commit.NONE)
        assert control.lease_valid()
        return TrialEnd(ended, self.records.commit(ended))

    async def answered(self, node: str, permits: NodePermits, name: str, who: str) -> bool:
        pause = 1.0
        for _ in range(REPEATS):
            async with permits.admit(name, who, 1000, 1000) as admission:
                if self.cut_off(node, self.loop.time() - self.started):
                    await asyncio.sleep(0.05)
                    admission.answered(None, [])
                elif self.bad_agents and name == "condition-0" and who.endswith("0"):
                    await asyncio.sleep(0.05)
                    admission.answered(400, [])
                    return True
                else:
                    status, headers = await self.providers[name].ask(1000, 200, 2.0)
                    admission.answered(status, headers)
                    if status == 200:
                        return True
            await asyncio.sleep(pause)
            pause *= 2
        return False

    async def run(self) -> Told:
        dispatcher = Dispatcher(
            self.spec,
            self.cells,
            self.queue,
            self.records,
            FakeSource(self.nodes),
            self.observer,
            StopSignal(),
            generation=1,
            clock=self.loop.time,
            pauses=Pauses(),
        )
        end = await dispatcher.run()
        parked = self.observer.when("endpoint condition-0: its cells wait")
        back = self.observer.when("endpoint condition-0 works again")
        other = self.providers["condition-1"].admitted
        before = sum(FALLS_S - BEFORE_S <= at < FALLS_S for at in other) / BEFORE_S
        after = sum(FALLS_S <= at < FALLS_S + AFTER_S for at in other) / AFTER_S
        spans = list(itertools.zip_longest(parked, back, fillvalue=float("inf")))
        return Told(
            parked,
            back,
            after / before,
            sum(each.verdict == "invalid" for each in self.observer.records),
            sum(
                name == "condition-0" and any(a + 1.5 < at < b - 3.0 for a, b in spans)
                for at, name in self.leased
            ),
            end.state,
            tuple(self.observer.notes),
        )


def tell(**how: object) -> Told:
    """Runs it in virtual time."""

    async def work() -> Told:
        return await Outage(**how).run()  # type: ignore[arg-type]

    return run_virtually(work())


def main() -> None:
    """Prints what happened."""
    told = tell()
    write = sys.stdout.write
    write(f"down at {FALLS_S:g} s, back at {RISES_S:g} s\n")
    write("parked at " + ", ".join(f"{at:.1f} s" for at in told.parked_at) + "\n")
    write("going on at " + ", ".join(f"{at:.1f} s" for at in told.back_at) + "\n")
    write(f"the other endpoint: {told.other_ratio:.2f} of its throughput before\n")
    write(f"{told.lost_tries} tries lost, {told.leased_while_parked} probes; {told.state}\n")
    for note in told.notes:
        write(f"  {note}\n")


if __name__ == "__main__":
    main()
