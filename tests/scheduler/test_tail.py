"""The slowest node does not hold the sweep: what it would be late with is left to quicker ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pytest

from scheduler.tail import Pace, may_take
from tests.scheduler.dispatching import Sweep, run
from tests.scheduler.fakes import FakeNode, FakeRecords, passing
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Control, TrialEnd, TrialFunction

Rule = Callable[[str, "Left", Mapping[str, "Simulated"]], bool]


@dataclass
class Left:
    """A queue in which nothing but a number is."""

    waiting: int
    broken: str = ""
    """The node whose breaker is open."""

    def broken_since(self, nodes: Iterable[str]) -> float | None:
        return 0.0 if set(nodes) == {self.broken} else None


@dataclass
class Simulated:
    """A node of a simulation in which nothing but time passes."""

    pace: Pace
    seconds: float
    """What a trial takes there."""


def simulated(attempts: int, nodes: Mapping[str, tuple[int, float]], rule: Rule) -> float:
    """When the last attempt ends; each node has slots and seconds a trial."""
    there = {name: Simulated(Pace(slots), each) for name, (slots, each) in nodes.items()}
    ends: list[tuple[float, str]] = []
    idle = [name for name, (slots, _) in nodes.items() for _ in range(slots)]
    now, left = 0.0, Left(attempts)
    while True:
        for name in sorted(idle, key=lambda each: there[each].seconds, reverse=True):
            if left.waiting and rule(name, left, there):
                left.waiting -= 1
                idle.remove(name)
                heapq.heappush(ends, (now + there[name].seconds, name))
        if not ends:
            assert not left.waiting, "nobody takes what is left"
            return now
        now, name = heapq.heappop(ends)
        there[name].pace.ended(there[name].seconds)
        idle.append(name)


def first_come(*_: object) -> bool:
    """The rule that there is none."""
    return True


@pytest.mark.parametrize("attempts", range(60, 300, 7))
def test_a_node_ten_times_slower_costs_a_sweep_hardly_anything(attempts: int) -> None:
    nodes = {"quick": (4, 10.0), "quicker": (4, 8.0), "slow": (4, 100.0)}
    without_it = {name: each for name, each in nodes.items() if name != "slow"}
    alone = simulated(attempts, without_it, may_take)
    helped = simulated(attempts, nodes, may_take)
    held = simulated(attempts, nodes, first_come)
    assert helped <= held
    # What it took before anybody knew it may take as long as it takes; after that it only helps.
    assert helped <= max(alone + 10.0, 100.0)


def test_a_slow_tail_is_what_the_rule_saves() -> None:
    nodes = {"quick": (4, 10.0), "slow": (4, 100.0)}
    spans = [
        (simulated(n, nodes, may_take), simulated(n, nodes, first_come)) for n in range(60, 200)
    ]
    assert max(held - helped for helped, held in spans) >= 80.0
    assert all(helped <= held for helped, held in spans)


def pace(slots: int, seconds: float, trials: int = 1) -> Simulated:
    return Simulated(Pace(slots, trials, seconds), seconds)


@pytest.mark.parametrize(
    ("waiting", "own", "other", "may"),
    [
        (1, pace(4, 100.0), pace(4, 10.0), False),
        (35, pace(4, 100.0), pace(4, 10.0), False),
        (36, pace(4, 100.0), pace(4, 10.0), True),
        (1, pace(4, 14.0), pace(4, 10.0), True),
        (1, pace(4, 10.0), pace(4, 100.0), True),
        (1, pace(4, 0.0, trials=0), pace(4, 10.0), True),
        (1, pace(4, 100.0), pace(4, 0.0, trials=0), True),
        # The other one drains: nobody would come round to it.
        (1, pace(4, 100.0), pace(0, 10.0), True),
    ],
)
def test_it_is_left_to_others_only_if_they_would_be_through_before(
    waiting: int, own: Simulated, other: Simulated, may: bool
) -> None:
    assert may_take("own", Left(waiting), {"own": own, "other": other}) is may


def test_nothing_is_left_to_a_quicker_node_whose_breaker_is_open() -> None:
    nodes = {"own": pace(4, 100.0), "other": pace(4, 10.0)}
    assert may_take("own", Left(1, broken="other"), nodes)
    assert not may_take("own", Left(1), nodes)


def test_a_node_alone_and_one_that_nobody_knows_take_everything() -> None:
    assert may_take("own", Left(1), {"own": pace(4, 100.0)})
    assert may_take("own", Left(1), {"other": pace(4, 10.0)})


def test_newer_trials_count_more() -> None:
    found = Pace(slots=1)
    for seconds in (10.0, 20.0):
        found.ended(seconds)
    assert found.seconds == 15.0
    for _ in range(40):
        found.ended(100.0)
    assert found.seconds == pytest.approx(100.0, abs=0.1)


def claiming(records: FakeRecords, node: str, seconds: float) -> TrialFunction:
    """Trials that end at once, and say that they took longer."""
    passed = passing(records, node)

    async def trial(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
        end = await passed(cell, lease, control)
        took = end.record.model_copy(update={"phase_seconds": {"drive": seconds}})
        return TrialEnd(took, end.commit)

    return trial


def test_the_driver_gives_the_last_attempts_to_quicker_nodes() -> None:
    async def test() -> None:
        sweep = Sweep(k=50)
        slow = FakeNode("slow", claiming(sweep.records, "slow", 1e6), slots=1)
        quick = FakeNode("quick", claiming(sweep.records, "quick", 1.0), slots=1)
        end = await sweep.run(slow, quick)
        assert end.state == "settled"
        sweep.assert_complete()
        # Known after its first trial: from then on everything waits for the quick one.
        assert len(slow.taken) < len(quick.taken) / 2

    run(test)
