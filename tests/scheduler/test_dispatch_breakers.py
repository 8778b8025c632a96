"""The driver's loop while breakers are open."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from scheduler.commit import Rebuilt
from scheduler.driver import fill_queue
from tests.scheduler import builders
from tests.scheduler.dispatching import Sweep, run
from tests.scheduler.fakes import FakeNode, passing, scripted
from tests.scheduler.test_driver import SmallPlan
from workers.contract.outcome import Cause
from workers.contract.spec import CellSpec, Lease

QUICK: dict[str, Any] = {
    "endpoint_probe_s": 0.02,
    "node_probe_s": 0.02,
    "max_tries": 20,
    "poison": 99,
}


def sweep_with_endpoints(k: int = 5, **limits: Any) -> Sweep:
    """Two conditions, each with an endpoint of its name."""
    sweep = Sweep(k=0, **{**QUICK, **limits})
    sweep.attempts = builders.attempts(sweep.cells, k)
    for each in sweep.attempts:
        condition = sweep.cells[each.cell].condition
        sweep.queue.enqueue(
            each.attempt,
            index=each.index,
            cell=each.cell,
            condition=condition.condition,
            endpoints=condition.endpoints,
        )
    return sweep


@pytest.mark.long
def test_an_endpoint_that_stays_down_ends_the_sweep_after_the_others_are_through() -> None:
    async def test() -> None:
        sweep = sweep_with_endpoints(endpoint_breaker=2, endpoint_give_up_s=0.5)

        def cause(cell: CellSpec, _: Lease) -> Cause:
            down = cell.condition.condition == "condition-0"
            return Cause.PROVIDER_5XX if down else Cause.NONE

        node = FakeNode("n1", scripted(sweep.records, cause))
        end = await sweep.run(node)
        assert end.state == "infrastructure"
        assert "condition-0 for" in end.reason
        assert "without a success" in end.reason
        assert len(sweep.records.committed) == 10
        assert not sweep.queue.settled
        assert any("endpoint condition-0: its cells wait" in note for note in sweep.observer.notes)
        probes = [lease for lease in node.taken if lease.probe]
        assert 1 <= len(probes) <= 0.5 / 0.02 + 1
        # It waited in long polls, and did not spin.
        assert len(node.sent) < 100
        left = sum(each.waiting for each in sweep.observer.views[-1].conditions)
        assert left == 10

    run(test)


def test_an_endpoint_that_comes_back_lets_its_cells_go_on_by_themselves() -> None:
    async def test() -> None:
        sweep = sweep_with_endpoints()
        sweep.queue.endpoint_down("condition-0", time.monotonic())
        node = FakeNode("n1", passing(sweep.records))
        end = await sweep.run(node)
        assert end.state == "settled"
        assert sum(lease.probe for lease in node.taken) == 1
        sweep.assert_complete()
        assert any("condition-0 works again" in note for note in sweep.observer.notes)

    run(test)


@pytest.mark.long
def test_a_sweep_whose_nodes_all_fail_their_trials_ends() -> None:
    async def test() -> None:
        sweep = Sweep(k=9, **{**QUICK, "node_give_up_s": 0.3})
        nodes = [
            FakeNode(name, scripted(sweep.records, lambda *_: Cause.CONTAINER_START, name))
            for name in ("n1", "n2")
        ]
        end = await sweep.run(*nodes)
        assert end.state == "infrastructure"
        assert "every node fails its trials" in end.reason
        assert "n1, n2" in end.reason
        assert any("node n1: gets only probes" in note for note in sweep.observer.notes)

    run(test)


@pytest.mark.long
def test_a_bad_node_leaves_the_work_to_a_good_one() -> None:
    async def test() -> None:
        sweep = Sweep(k=30, **{**QUICK, "node_probe_s": 60.0, "max_tries": 3, "poison": 5})
        bad = FakeNode("n1", scripted(sweep.records, lambda *_: Cause.CONTAINER_START, "n1"))
        good = FakeNode("n2", passing(sweep.records, "n2", 0.005))
        end = await sweep.run(bad, good)
        assert end.state == "settled"
        sweep.assert_complete()
        assert len(bad.taken) <= 9

    run(test)


def test_the_operator_can_stop_a_sweep_that_waits_for_an_endpoint() -> None:
    async def test() -> None:
        sweep = sweep_with_endpoints(endpoint_probe_s=60.0)
        for name in ("condition-0", "condition-1"):
            sweep.queue.endpoint_down(name, time.monotonic())
        asyncio.get_running_loop().call_later(0.05, sweep.stop.request)
        node = FakeNode("n1", passing(sweep.records))
        end = await sweep.run(node)
        assert end.state == "interrupted"
        assert not node.taken

    run(test)


def test_a_cell_waits_for_the_endpoints_of_its_roster_and_a_canary_without_a_model_for_none() -> (
    None
):
    made = [*builders.cells(conditions=2).values()]
    made[1] = made[1].model_copy(update={"canary": "nop"})
    cells = {cell.cell: cell for cell in made}
    plan = SmallPlan(builders.sweep_spec(), tuple(made), builders.attempts(cells, 1))
    queue = fill_queue(plan, cells, Rebuilt({}, {}), 1)
    for cell in made:
        (endpoint,) = cell.condition.endpoints
        assert queue.endpoint_down(endpoint, 0.0) == (cell.canary is None)
    assert [lease.cell for lease in queue.lease("n1", 9, 1.0)] == [made[1].cell]
