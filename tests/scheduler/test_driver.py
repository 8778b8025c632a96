"""A run from a plan to its end on a real file store, with simulated nodes."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from scheduler.cluster import ClusterOptions
from scheduler.commit import Rebuilt
from scheduler.driver import GARBAGE, drive, fill_queue
from scheduler.errors import ClusterError
from scheduler.journal_reading import driver_end
from scheduler.manifest import SweepBudget
from scheduler.progress import Standings
from scheduler.queue import State
from scheduler.retry import Spent
from scheduler.spending import SpendingNote
from scheduler.stop import StopSignal
from scheduler.view import Standing, SweepEnd
from tests.scheduler.builders import (
    SWEEP,
    Planned,
    attempts,
    cells,
    limits,
    record,
    sweep_spec,
)
from tests.scheduler.fakes import FakeNode, FakeObserver, FakeSource
from workers.contract.budget import Spending
from workers.contract.outcome import Cause, Verdict
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.storage import Store, open_store


@dataclass(frozen=True)
class SmallPlan:
    """A plan as far as a run needs it."""

    spec: SweepSpec
    cells: tuple[CellSpec, ...]
    attempts: list[Planned]
    budget: SweepBudget = field(default_factory=SweepBudget)


@dataclass
class Nodes:
    """Gives nodes, and remembers what it was asked for."""

    nodes: list[FakeNode]
    untidy_nodes: tuple[str, ...] = ()
    asked: list[ClusterOptions] = field(default_factory=list)
    left_alone: bool = False

    def __call__(self, spec: SweepSpec, options: ClusterOptions) -> Self:
        self.asked.append(options)
        self._source = FakeSource(self.nodes)
        return self

    async def find(self) -> Any:
        return await self._source.find()

    def let_be(self) -> None:
        self.left_alone = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            await node.node.close(0.0)


def plan_of(folder: Path, count: int = 3) -> SmallPlan:
    made = cells(conditions=2, tasks=2)
    spec = sweep_spec(store=f"file://{folder / 'store'}", limits=limits(max_tries=2))
    return SmallPlan(spec, tuple(made.values()), attempts(made, count))


def sealing(store: Store, cause_of: Callable[[Lease], Cause]) -> TrialFunction:
    """Trials that end at once and write what real ones write at their end."""

    async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
        ended = record(cell, lease, cause_of(lease))
        document = ended.to_json().encode() + b"\n"
        store.put(f"{try_prefix(SWEEP, ended.attempt, ended.try_)}/try.json", document)
        if ended.verdict is Verdict.INVALID:
            return TrialEnd(ended, Commit.NONE)
        created = store.create(result_key(SWEEP, ended.attempt), document)
        return TrialEnd(ended, Commit.WRITTEN if created else Commit.SUPERSEDED)

    return run


def go(
    plan: SmallPlan, folder: Path, nodes: Nodes, stop: StopSignal | None = None, **more: Any
) -> tuple[SweepEnd, FakeObserver, list[str]]:
    observer, reaped = FakeObserver(), []

    async def reap(node: str, workspace: Path) -> None:
        reaped.append(node)

    async def bounded() -> SweepEnd:
        async with asyncio.timeout(20.0):
            return await drive(
                plan,
                plan.spec.store,
                n_concurrent=7,
                ray_address=None,
                observer=observer,
                stop=stop or StopSignal(),
                home=folder,
                open_nodes=nodes,
                reap=reap,
                **more,
            )

    return asyncio.run(bounded()), observer, reaped


def stood(standings: Mapping[Standing, int]) -> Counter[tuple[str, ...]]:
    """State, verdict, blame and cause, counted."""
    found = Counter[tuple[str, ...]]()
    for each, count in standings.items():
        found[each[3:]] += count
    return found


def results(plan: SmallPlan) -> dict[str, TryRecord]:
    store = open_store(plan.spec.store)
    keys = [result_key(SWEEP, each.attempt) for each in plan.attempts]
    found = [TryRecord.from_json(store.get(k), k) for k in keys if store.exists(k)]
    return {each.attempt: each for each in found}


def test_a_sweep_runs_and_a_second_run_has_nothing_to_do(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    run = sealing(open_store(plan.spec.store), lambda _: Cause.NONE)
    nodes = Nodes([FakeNode("n1", run)])
    end, observer, reaped = go(plan, tmp_path, nodes, node_metrics="127.0.0.1:0")
    assert (end.state, end.idle) == ("settled", False)
    assert observer.notes[0] == "starting Ray and a node on this machine"
    assert len(results(plan)) == len(observer.records) == 12
    assert reaped == []
    (asked,) = nodes.asked
    assert (asked.address, asked.home, asked.n_concurrent) == (None, tmp_path, 7)
    assert (asked.task_memory_mb, asked.task_cpus) == (1024, 1)
    assert asked.node_metrics == "127.0.0.1:0"

    idle = Nodes([])
    end, observer, _ = go(plan, tmp_path, idle)
    assert (end.state, end.idle, end.reason) == ("settled", True, f"nothing is open in {SWEEP}")
    assert (observer.records, observer.notes, idle.asked) == ([], [], [])


def test_a_resume_runs_what_is_missing_and_counts_tries_of_before(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    stop, begun = StopSignal(), Counter[str]()
    bad = plan.attempts[0].attempt

    def first(lease: Lease) -> Cause:
        begun[lease.attempt] += 1
        if len(begun) == 6:
            stop.request()
        return Cause.CONTAINER_LOST if lease.attempt == bad else Cause.WRONG

    end, _, _ = go(plan, tmp_path, Nodes([FakeNode("n1", sealing(store, first), slots=1)]), stop)
    assert end.state == "interrupted"
    before = results(plan)
    assert len(before) == 5

    def second(lease: Lease) -> Cause:
        begun[lease.attempt] += 1
        return Cause.CONTAINER_LOST if lease.attempt == bad else Cause.NONE

    end, observer, _ = go(plan, tmp_path, Nodes([FakeNode("n1", sealing(store, second))]))
    assert end.state == "settled"
    after = results(plan)
    assert {attempt: after[attempt] for attempt in before} == before
    assert set(after) == {each.attempt for each in plan.attempts} - {bad}
    assert begun[bad] == 2
    assert set(begun.values()) == {1, 2}
    epochs = {each.epoch[0] for each in observer.records}
    assert epochs == {2}
    # Whose doing each was is known from the first moment on, and at the end.
    lost = ("invalid", "harness", "container_lost")
    assert stood(observer.views[0].standings) == {
        ("committed", "fail", "model", "wrong"): 5,
        ("planned", *lost): 1,
        ("planned", "", "", ""): 6,
    }
    assert stood(observer.views[-1].standings) == {
        ("committed", "fail", "model", "wrong"): 5,
        ("committed", "pass", "none", "none"): 6,
        ("dead", *lost): 1,
    }


def test_what_the_operator_stopped_is_run_by_a_resume(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, count=1)
    store = open_store(plan.spec.store)
    cancelled = sealing(store, lambda _: Cause.CANCELLED)
    end, _, _ = go(plan, tmp_path, Nodes([FakeNode("n1", cancelled)]))
    assert end.state == "interrupted"
    assert results(plan) == {}
    passing = sealing(store, lambda _: Cause.NONE)
    end, _, _ = go(plan, tmp_path, Nodes([FakeNode("n1", passing)]))
    assert end.state == "settled"
    assert len(results(plan)) == 4


def test_what_a_dead_local_node_may_have_left_is_reaped(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, count=1)
    run = sealing(open_store(plan.spec.store), lambda _: Cause.NONE)
    nodes = Nodes([FakeNode("n1", run)], untidy_nodes=("n1",))
    _, _, reaped = go(plan, tmp_path, nodes)
    assert reaped == ["n1"]


def test_the_queue_is_filled_with_what_the_store_says(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    first, second, third, *_ = (each.attempt for each in plan.attempts)
    rebuilt = Rebuilt(
        {first: Verdict.FAIL},
        {second: Spent(2, 0), third: Spent(1, 0)},
        causes={first: Cause.NO_REPLY, second: Cause.NODE_OOM, third: Cause.RATE_LIMITED},
    )
    made = {cell.cell: cell for cell in plan.cells}
    queue = fill_queue(plan, made, rebuilt, generation=3)
    states = [queue.state(each) for each in (first, second, third)]
    assert states == [State.COMMITTED, State.DEAD, State.PLANNED]
    assert set(queue.counts()) == {"condition-0", "condition-1"}
    assert stood(Standings(made).of(queue.standings)) == {
        ("committed", "fail", "model", "no_reply"): 1,
        ("dead", "invalid", "harness", "node_oom"): 1,
        ("planned", "invalid", "provider", "rate_limited"): 1,
        ("planned", "", "", ""): len(plan.attempts) - 3,
    }
    assert queue.lease("n1", 1, 0.0)[0].epoch == (3, 1)


def test_why_nothing_was_begun_stands_in_the_journal(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    stop = StopSignal()
    stop.request()
    end, _, _ = go(plan, tmp_path, Nodes([]), stop)
    assert driver_end(store, SWEEP, 1) == f"interrupted: {end.reason}"
    note = SpendingNote(sweep=SWEEP, generation=1, lost=Spending(calls=5), left={})
    store.put(f"sweeps/{SWEEP}/spending/1.json", note.to_json().encode())
    limited = replace(plan, budget=SweepBudget(max_calls=5))
    end, _, _ = go(limited, tmp_path, Nodes([]))
    assert driver_end(store, SWEEP, 2) == f"budget: {end.reason}"

    def broken() -> None:
        raise ClusterError("no cluster could be reached")

    with pytest.raises(ClusterError):
        go(plan, tmp_path, Nodes([]), before_nodes=broken)
    assert driver_end(store, SWEEP, 3) == "ClusterError: no cluster could be reached"


def test_garbage_is_searched_rarely_while_a_sweep_runs(tmp_path: Path) -> None:
    found = []

    def cause_of(_: Lease) -> Cause:
        found.append(gc.get_threshold())
        return Cause.NONE

    before = gc.get_threshold()
    store = open_store(f"file://{tmp_path / 'store'}")
    go(plan_of(tmp_path), tmp_path, Nodes([FakeNode("n1", sealing(store, cause_of))]))
    assert set(found) == {GARBAGE}
    assert gc.get_threshold() == before
