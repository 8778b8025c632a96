"""Nodes that take long to join, come under a name that was another's, or are given back late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from scheduler.errors import NodeLostError, NodeSpareError
from tests.scheduler.dispatching import QUICK, SHORT_TERM_S, Sweep, run
from tests.scheduler.fakes import FakeNode, FakeSource, passing
from workers.contract.outcome import Cause
from workers.contract.report import Orders, Progress
from workers.contract.trial import TrialFunction

IMPATIENT = replace(QUICK, no_node=0.2)


class SlowSource(FakeSource):
    """Needs longer to open its nodes than a sweep waits for one."""

    async def find(self) -> Sequence[FakeNode]:
        await asyncio.sleep(2 * IMPATIENT.no_node)
        return await super().find()


def test_a_sweep_does_not_end_for_want_of_nodes_while_one_is_opened() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        node = FakeNode("n1", passing(sweep.records))
        end = await sweep.run(source=SlowSource([node]), pauses=IMPATIENT)
        assert end.state == "settled"
        end = await Sweep(k=1).run(source=SlowSource([]), pauses=IMPATIENT)
        assert (end.state, end.reason) == ("infrastructure", "no node could work (there was none)")

    run(test)


class Replaced(FakeNode):
    """Falls silent once it has leases, and is dead when it is asked again."""

    async def exchange(self, orders: Orders) -> Progress:
        if self.is_silent(len(self.sent)):
            return await super().exchange(orders)
        if self.taken:
            raise NodeLostError(self.name, "its process died")
        return await super().exchange(orders)


class Joining(FakeSource):
    """Gives its second node once the driver has given up the first."""

    def __init__(self, sweep: Sweep, first: FakeNode, second: FakeNode) -> None:
        super().__init__([first])
        self._sweep = sweep
        self._second: list[FakeNode] = [second]

    async def find(self) -> Sequence[FakeNode]:
        if any("is lost" in note for note in self._sweep.observer.notes):
            found, self._second = self._second, []
            return found
        return await super().find()


@pytest.mark.long
def test_the_end_of_a_node_takes_nothing_from_another_of_its_name() -> None:
    async def test() -> None:
        sweep = Sweep(k=1, lease_term_s=SHORT_TERM_S)
        loop = asyncio.get_running_loop()
        old = Replaced("n1", passing(sweep.records, "old", 60.0), slots=1)
        silent_until = loop.time() + 1.5 * SHORT_TERM_S
        old.is_silent = lambda number: number > 1 and loop.time() < silent_until
        # The old one is asked again 1.5 terms after it was given up, while these still run.
        new = FakeNode("n1", passing(sweep.records, "new", 3 * SHORT_TERM_S), slots=4)
        end = await sweep.run(old, new, source=Joining(sweep, old, new))
        assert end.state == "settled"
        sweep.assert_complete()
        assert Cause.NODE_LOST not in {each.cause for each in sweep.observer.records}
        assert len({lease.attempt for lease in new.taken}) == len(new.taken) == 4

    run(test)


class GivenBack(FakeNode):
    """Is spare from when it is told so."""

    def __init__(self, name: str, run: TrialFunction, spare: Callable[[], bool]) -> None:
        super().__init__(name, run, slots=1)
        self._spare = spare

    async def exchange(self, orders: Orders) -> Progress:
        if self._spare():
            raise NodeSpareError(self.name, "the others have room for all that is open")
        return await super().exchange(orders)


@pytest.mark.long
def test_a_node_that_fell_silent_and_is_given_back_ends_no_sweep() -> None:
    async def test() -> None:
        sweep = Sweep(k=2, lease_term_s=SHORT_TERM_S)
        told = sweep.observer.notes
        spare = GivenBack(
            "spare", passing(sweep.records), lambda: any("spare is lost" in each for each in told)
        )
        spare.is_silent = lambda number: number > 2
        stays = FakeNode("stays", passing(sweep.records, "stays", 0.8), slots=3)
        end = await sweep.run(spare, stays)
        assert end.state == "settled"
        sweep.assert_complete()
        assert any("spare is given back" in note for note in told)

    run(test)


@pytest.mark.long
def test_leases_of_a_node_that_is_given_back_are_run_elsewhere() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        spare = GivenBack(
            "spare", passing(sweep.records, seconds=60.0), lambda: bool(spare.node.running)
        )
        stays = FakeNode("stays", passing(sweep.records, "stays", 0.01), slots=1)
        end = await sweep.run(spare, stays)
        assert end.state == "settled"
        sweep.assert_complete()

    run(test)
