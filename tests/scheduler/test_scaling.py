"""How many nodes a sweep needs of a cluster that grows and shrinks, and how one is given back."""

from __future__ import annotations

import pytest

from scheduler.errors import NodeSpareError
from scheduler.lending import Lender
from scheduler.manifest import SweepBudget
from scheduler.scaling import may_go, nodes_wanted
from tests.scheduler.dispatching import Sweep, run
from tests.scheduler.fakes import FakeNode, passing
from workers.contract.budget import Allowance, Spending
from workers.contract.report import Orders, Progress


@pytest.mark.parametrize(
    ("open_attempts", "rooms", "n_concurrent", "wanted"),
    [
        (0, {}, 4, 0),
        (0, {"a": 4}, 4, 0),
        (1, {}, 4, 1),
        (9, {}, 4, 3),
        (1000, {}, 4, 5),
        # How much fits on a node is not known yet: one will tell.
        (1000, {}, None, 1),
        (9, {"a": 4}, None, 3),
        (1000, {"a": 4}, None, 5),
        (8, {"a": 4, "b": 4}, None, 2),
        (4, {"a": 4, "b": 4}, None, 1),
        (5, {"a": 4, "b": 4, "c": 4}, None, 2),
        (1, {"a": 4, "b": 4, "c": 4}, None, 1),
        # Nodes of different sizes: the smaller one is the one that could go.
        (8, {"a": 2, "b": 8}, None, 1),
        (9, {"a": 2, "b": 8}, None, 2),
        # More than may be asked for are there already: none is asked for, none is sent away.
        (1000, {str(n): 4 for n in range(7)}, None, 5),
    ],
)
def test_as_many_nodes_are_wanted_as_open_attempts_fill(
    open_attempts: int, rooms: dict[str, int], n_concurrent: int | None, wanted: int
) -> None:
    found = nodes_wanted(open_attempts, rooms, most=5, n_concurrent=n_concurrent)
    assert found == wanted


def test_a_node_may_go_once_the_others_have_room_for_all_that_is_open() -> None:
    rooms = {"a": 4, "b": 4, "c": 2}
    assert not may_go("a", 7, rooms)
    assert may_go("a", 6, rooms)
    assert may_go("c", 8, rooms)
    assert not may_go("c", 9, rooms)
    assert not may_go("unknown", 1, rooms)


def test_the_last_node_stays_while_something_is_open() -> None:
    assert not may_go("a", 1, {"a": 4})
    assert not may_go("a", 0, {"a": 4})


class SpareNode(FakeNode):
    """A node that is not needed any more once it has run something."""

    async def exchange(self, orders: Orders) -> Progress:
        if self.taken and not orders.leases and not self.node.running:
            raise NodeSpareError(self.name, "the others have room for all that is open")
        return await super().exchange(orders)


def test_a_node_that_is_given_back_is_not_lost_and_takes_nothing_with_it() -> None:
    async def test() -> None:
        sweep = Sweep(k=5)
        spare = SpareNode("spare", passing(sweep.records, "spare", 0.01), slots=2)
        stays = FakeNode("stays", passing(sweep.records, "stays", 0.05), slots=2)
        end = await sweep.run(spare, stays)
        assert end.state == "settled"
        sweep.assert_complete()
        assert not [each for each in sweep.observer.records if each.verdict == "invalid"]
        (note,) = (each for each in sweep.observer.notes if "spare" in each)
        assert note == "node spare is given back: the others have room for all that is open"
        assert sweep.observer.views[-1].lost_nodes == 0
        assert [each.node for each in sweep.observer.views[-1].node_views] == ["stays"]

    run(test)


def test_what_a_node_that_is_given_back_did_not_spend_is_there_again() -> None:
    lender = Lender(SweepBudget(max_calls=10))
    assert lender.lend("a", gives_work=True) == Allowance(calls=10)
    lender.heard(
        "a",
        Progress(node="a", free_slots=1, spent=Spending(calls=3), ceiling=Allowance(calls=10)),
    )
    lender.returned("a")
    lender.returned("nobody")
    assert lender.spent.calls == 3
    assert lender.lend("b", gives_work=True) == Allowance(calls=7)
