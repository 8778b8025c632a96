"""A budget that is lent to nodes: never passed, wholly used, and given to who wants it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.lending import Earlier, Lender
from scheduler.manifest import SweepBudget
from tests.scheduler.builders import cell_spec, lease, record
from workers.allowance import Purse
from workers.contract.budget import Allowance, Spending
from workers.contract.report import Progress, RunningTry
from workers.contract.result import Usage
from workers.contract.spec import Epoch

RUNNING = (RunningTry(attempt="a", epoch=Epoch(1, 1), phase="drive"),)


class Simulated:
    """A node: a purse, and calls that want to go."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.purse = Purse()
        self.busy = True
        self.waiting: list[asyncio.Task[str | None]] = []

    def ask(self) -> None:
        self.waiting.append(asyncio.create_task(self.purse.admit("a/1")))

    def progress(self) -> Progress:
        return Progress(
            node=self.name,
            free_slots=0,
            running=RUNNING if self.busy else (),
            spent=self.purse.spent,
            ceiling=self.purse.ceiling,
            wants=self.purse.wants,
        )

    def exchange(self, lender: Lender) -> None:
        self.purse.lend(lender.lend(self.name, gives_work=True), is_over=lender.is_over)

    def end(self) -> None:
        for task in self.waiting:
            task.cancel()


def test_no_budget_is_no_limit() -> None:
    lender = Lender(SweepBudget())
    assert lender.lend("n") is None
    assert not lender.is_limited
    assert lender.reached is None


def test_one_node_gets_all_and_earlier_spending_counts() -> None:
    lender = Lender(
        SweepBudget(max_calls=10, max_cost_usd=1.0), Earlier(Spending(calls=4, cost_usd=0.25))
    )
    assert lender.lend("n", gives_work=True) == Allowance(calls=6, cost_usd=0.75)
    assert lender.lend("idle") == Allowance(calls=0, cost_usd=0.0)


@pytest.mark.parametrize(
    ("budget", "earlier", "words"),
    [
        (SweepBudget(max_calls=4), Spending(calls=4), "max_calls 4, 4 are spent"),
        (SweepBudget(max_input_tokens=9), Spending(input_tokens=12), "max_input_tokens 9, 12"),
        (SweepBudget(max_output_tokens=9), Spending(output_tokens=9), "max_output_tokens 9"),
        (SweepBudget(max_cost_usd=0.3), Spending(cost_usd=0.1 + 0.2), "max_cost_usd 0.3, 0.3"),
    ],
)
def test_what_is_spent_is_over(budget: SweepBudget, earlier: Spending, words: str) -> None:
    lender = Lender(budget, Earlier(earlier))
    assert lender.is_over
    assert words in str(lender.reached)


def test_what_a_dead_node_was_lent_counts_as_spent() -> None:
    lender = Lender(SweepBudget(max_calls=10))
    lender.lend("a", gives_work=True)
    lender.lost("a")
    assert lender.is_over
    lender = Lender(SweepBudget(max_calls=10))
    lender.lend("a", gives_work=True)
    lender.heard("a", Progress(node="a", free_slots=0, ceiling=Allowance(calls=2)))
    lender.lost("a")
    lender.lost("never known")
    assert lender.spent.calls == 2
    assert lender.lend("b", gives_work=True) == Allowance(calls=8)


def test_what_is_recorded_and_told_by_an_adopted_node_counts_once() -> None:
    cell = cell_spec()
    ended = record(cell, lease(cell)).model_copy(
        update={"usage": Usage(calls=3, counted=Spending(calls=3))}
    )
    earlier = Earlier(
        recorded=Spending(calls=5),
        tries=frozenset({f"{ended.attempt}/{ended.try_}"}),
        lost=Spending(calls=1),
        left={"a": Spending(calls=2), "gone": Spending(calls=4)},
    )
    lender = Lender(SweepBudget(max_calls=20), earlier)
    assert lender.spent.calls == 12
    lender.adopted("a")
    assert lender.spent.calls == 10
    told = Progress(
        node="a", free_slots=0, running=RUNNING, ended=(ended,), spent=Spending(calls=5)
    )
    for _ in range(2):  # It repeats itself until it knows that it was heard.
        lender.heard("a", told)
        # Recorded: 5, three of them told by the node, which has spent two more. Lost: 1 and 4.
        assert lender.spent.calls == 12
    assert lender.unrecorded == (
        Spending(calls=1),
        {"a": Spending(calls=2), "gone": Spending(calls=4)},
    )
    lender.lost("a")
    assert lender.unrecorded[0].calls == 3


def test_another_process_under_a_nodes_name_begins_anew() -> None:
    lender = Lender(SweepBudget(max_calls=10))
    lender.lend("a", gives_work=True)
    spent = Progress(
        node="a", free_slots=0, spent=Spending(calls=3), ceiling=Allowance(calls=3), running=RUNNING
    )
    lender.heard("a", spent)
    lender.heard("a", Progress(node="a", free_slots=0, running=RUNNING))
    assert lender.spent.calls == 3
    assert lender.lend("a") == Allowance(calls=7)


def test_what_a_node_does_not_use_goes_to_who_waits() -> None:
    async def run() -> None:
        lender = Lender(SweepBudget(max_calls=20))
        idle, eager = Simulated("idle"), Simulated("eager")
        for node in (idle, eager):
            node.exchange(lender)
            lender.heard(node.name, node.progress())
        for _ in range(30):
            eager.ask()
        for _ in range(40):
            for node in (idle, eager):
                await asyncio.sleep(0)
                node.exchange(lender)
                await asyncio.sleep(0)
                lender.heard(node.name, node.progress())
        assert lender.spent.calls == eager.purse.spent.calls == 20
        assert lender.is_over
        eager.end()

    asyncio.run(run())


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["ask", "exchange", "lose answer", "settle"])),
    max_size=120,
)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(1, 25))
def test_calls_never_pass_the_budget_and_all_of_it_can_be_used(
    steps: list[tuple[int, str]], limit: int
) -> None:
    """Whatever answers are lost, and in whatever order nodes are spoken to."""

    async def run() -> None:
        lender = Lender(SweepBudget(max_calls=limit))
        nodes = [Simulated(name) for name in "abc"]

        def spent() -> int:
            return sum(node.purse.spent.calls for node in nodes)

        async def exchange(node: Simulated, *, answered: bool) -> None:
            node.exchange(lender)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if answered:
                lender.heard(node.name, node.progress())

        # A node has been spoken to before it runs anything.
        for node in nodes:
            await exchange(node, answered=True)
        for place, what in steps:
            node = nodes[place]
            if what == "ask":
                node.ask()
                await asyncio.sleep(0)
            elif what != "settle":
                await exchange(node, answered=what == "exchange")
            assert spent() <= limit
        for node in nodes:
            for _ in range(limit + 1):
                node.ask()
        for _ in range(6 * limit + 6):
            for node in nodes:
                await exchange(node, answered=True)
        assert spent() == limit
        assert lender.is_over
        for node in nodes:
            node.end()

    asyncio.run(run())


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.001, 0.2)), min_size=40, max_size=80))
def test_cost_passes_the_budget_by_what_is_in_flight_at_most(
    calls: list[tuple[int, float]],
) -> None:
    async def run() -> None:
        lender = Lender(SweepBudget(max_cost_usd=1.0))
        nodes = [Simulated(name) for name in "abc"]
        for node in nodes:
            node.exchange(lender)
            lender.heard(node.name, node.progress())
        for place, cost in calls:
            node = nodes[place]
            task = asyncio.create_task(node.purse.admit("a/1"))
            for _ in range(60):
                await asyncio.sleep(0)
                if task.done():
                    break
                for each in nodes:
                    each.exchange(lender)
                    await asyncio.sleep(0)
                    lender.heard(each.name, each.progress())
            if await task is None:
                node.purse.charge("a/1", Spending(calls=1, cost_usd=cost))
        total = sum(node.purse.spent.cost_usd for node in nodes)
        # Each node may have one call in flight here.
        assert total <= 1.0 + 3 * 0.2
        if sum(cost for _, cost in calls) > 1.7:
            assert total >= 1.0 - 1e-6

    asyncio.run(run())


def test_the_share_that_is_spent_is_the_largest_of_the_figures() -> None:
    assert Lender(SweepBudget()).share is None
    budget = SweepBudget(max_calls=10, max_cost_usd=8.0)
    assert Lender(budget).share == 0
    earlier = Earlier(recorded=Spending(calls=2, cost_usd=6.0))
    assert Lender(budget, earlier).share == 0.75
