"""A sweep's budget from end to end, with simulated nodes: it stops, is resumed, and adds up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.lending import Earlier, Lender, counted
from scheduler.manifest import SweepBudget
from scheduler.spending import earlier_spending, note_spending
from scheduler.store_calls import StoreCalls
from tests.scheduler.builders import SWEEP, cell_spec, lease, record
from tests.scheduler.fakes import FakeNode
from tests.scheduler.test_driver import Nodes, SmallPlan, go, plan_of, results
from workers.allowance import Purse
from workers.contract.budget import Spending
from workers.contract.outcome import Cause, Verdict
from workers.contract.report import Progress
from workers.contract.result import TryRecord, Usage, result_key, try_prefix
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.storage import Store, StoreError, open_store

CALLS = 3
COST = 0.01


def spending(store: Store, purse: Callable[[], Purse], tries: Counter[str]) -> TrialFunction:
    """Trials of three calls that cost a cent each; half of the first tries say nothing."""

    async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
        tries[lease.attempt] += 1
        key = f"{lease.attempt}/{lease.epoch}"
        spent, cause = Spending(), Cause.NONE
        if lease.index % 2 and tries[lease.attempt] == 1:
            cause = Cause.EVIDENCE_UNSOUND
        for _ in range(CALLS):
            if await purse().admit(key) is not None:
                cause = Cause.SWEEP_BUDGET
                break
            await asyncio.sleep(0.001)
            call = Spending(calls=1, input_tokens=100, output_tokens=10, cost_usd=COST)
            purse().charge(key, call)
            spent = spent + call
        usage = Usage(calls=spent.calls, cost_usd=spent.cost_usd, counted=spent)
        ended = record(cell, lease, cause).model_copy(update={"usage": usage})
        document = ended.to_json().encode()
        store.put(f"{try_prefix(SWEEP, ended.attempt, ended.try_)}/try.json", document)
        if ended.verdict is Verdict.INVALID:
            return TrialEnd(ended, Commit.NONE)
        created = store.create(result_key(SWEEP, ended.attempt), document)
        return TrialEnd(ended, Commit.WRITTEN if created else Commit.SUPERSEDED)

    return run


def nodes_of(store: Store, count: int, tries: Counter[str]) -> Nodes:
    made: list[FakeNode] = []

    def node(place: int) -> FakeNode:
        return FakeNode(
            f"n{place}", spending(store, lambda: made[place].node.purse, tries), slots=2
        )

    made.extend(node(number) for number in range(count))
    return Nodes(made)


def with_budget(plan: SmallPlan, **budget: float) -> SmallPlan:
    return replace(plan, budget=SweepBudget.model_validate(budget))


def sum_of_tries(store: Store) -> Spending:
    keys = [k for k in store.keys(f"sweeps/{SWEEP}/tries/") if k.endswith("/try.json")]
    records = [TryRecord.from_json(store.get(key), key) for key in keys]
    return sum((each.usage.counted for each in records), Spending())


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("budget", [{"max_calls": 20}, {"max_cost_usd": 0.2}])
def test_a_budget_stops_a_sweep_and_a_higher_one_goes_on(
    tmp_path: Path, count: int, budget: dict[str, float]
) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    tries: Counter[str] = Counter()
    end, observer, _ = go(with_budget(plan, **budget), tmp_path, nodes_of(store, count, tries))
    assert end.state == "budget", end
    assert next(iter(budget)) in end.reason
    spent = sum_of_tries(store)
    in_flight = 2 * count
    assert spent.calls <= 20 + (in_flight if "max_cost_usd" in budget else 0)
    # Nothing was left unused but what no whole call would have fitted in.
    assert spent.calls >= 20
    stopped = [each for each in observer.records if each.cause is Cause.SWEEP_BUDGET]
    assert {each.blame.value for each in stopped} <= {"operator"}
    before = results(plan)
    assert 0 < len(before) < 12

    # The same budget: nothing is started, whatever driver asks.
    end, observer, _ = go(with_budget(plan, **budget), tmp_path, nodes_of(store, count, tries))
    assert (end.state, observer.records) == ("budget", [])
    assert sum_of_tries(store) == spent

    higher = {name: 100 * value for name, value in budget.items()}
    end, _, _ = go(with_budget(plan, **higher), tmp_path, nodes_of(store, count, tries))
    assert end.state == "settled"
    after = results(plan)
    assert len(after) == 12
    assert {attempt: after[attempt] for attempt in before} == before


@pytest.mark.long
def test_a_node_that_dies_takes_no_more_than_it_was_lent(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    tries: Counter[str] = Counter()
    nodes = nodes_of(store, 2, tries)
    nodes.nodes[0].dies_at = 4
    end, _, _ = go(with_budget(plan, max_calls=20), tmp_path, nodes)
    assert end.state == "budget"
    assert sum(node.node.purse.spent.calls for node in nodes.nodes) <= 20
    # What died with the node stands in the driver's note, if not in a record.
    again, observer, _ = go(with_budget(plan, max_calls=20), tmp_path, nodes_of(store, 1, tries))
    assert (again.state, observer.records) == ("budget", [])


@pytest.mark.long
def test_what_is_settled_needs_no_budget(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    tries: Counter[str] = Counter()
    end, _, _ = go(plan, tmp_path, nodes_of(store, 1, tries))
    assert end.state == "settled"
    end, _, _ = go(with_budget(plan, max_calls=1), tmp_path, nodes_of(store, 1, tries))
    assert (end.state, end.idle) == ("settled", True)


@pytest.mark.long
def test_before_nodes_is_asked_only_where_something_is_open(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, count=1)
    store = open_store(plan.spec.store)

    def refuse() -> None:
        raise RuntimeError("no key")

    nodes = nodes_of(store, 1, Counter())
    with pytest.raises(RuntimeError, match="no key"):
        go(plan, tmp_path, nodes, before_nodes=refuse)
    assert nodes.asked == []
    go(plan, tmp_path, nodes_of(store, 1, Counter()))
    end, _, _ = go(plan, tmp_path, nodes_of(store, 1, Counter()), before_nodes=refuse)
    assert end.idle


def test_a_record_of_before_counts_with_what_it_says() -> None:
    known = Usage(calls=2, input_tokens=7, output_tokens=3, cost_usd=0.5)
    ended = record_with(known)
    assert counted(ended) == Spending(calls=2, input_tokens=7, output_tokens=3, cost_usd=0.5)
    newer = known.model_copy(update={"counted": Spending(calls=2, input_tokens=9, cost_usd=0.75)})
    assert counted(record_with(newer)) == newer.counted


def test_records_and_the_latest_note_count(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, count=1)
    store = open_store(plan.spec.store)
    usage = Usage(calls=2, counted=Spending(calls=2, input_tokens=50, cost_usd=0.5))
    ended = record_with(usage)
    store.put(f"{try_prefix(SWEEP, ended.attempt, ended.try_)}/try.json", ended.to_json().encode())

    async def run() -> None:
        calls = StoreCalls(store)
        key = f"{ended.attempt}/{ended.try_}"
        found = await earlier_spending(calls, SWEEP)
        assert found == Earlier(usage.counted, frozenset({key}))
        lender = Lender(SweepBudget(max_calls=99), Earlier(lost=Spending(calls=5)))
        written = await note_spending(calls, SWEEP, 2, lender)
        assert written is not None and written.lost == Spending(calls=5)
        assert await note_spending(calls, SWEEP, 2, lender, written) is written
        older = Lender(SweepBudget(max_calls=99), Earlier(lost=Spending(calls=50)))
        await note_spending(calls, SWEEP, 1, older)
        lender.heard("n", Progress(node="n", free_slots=0, spent=Spending(calls=3)))
        await note_spending(calls, SWEEP, 10, lender)
        found = await earlier_spending(calls, SWEEP)
        assert (found.lost, found.left) == (Spending(calls=5), {"n": Spending(calls=3)})
        assert Lender(SweepBudget(max_calls=10), found).is_over
        store.put(f"sweeps/{SWEEP}/spending/11.json", b"{}")
        with pytest.raises(StoreError, match=r"11\.json: it is not a driver's note"):
            await earlier_spending(calls, SWEEP)
        calls.end()

    asyncio.run(run())


def record_with(usage: Usage) -> TryRecord:
    cell = cell_spec()
    return record(cell, lease(cell)).model_copy(update={"usage": usage})
