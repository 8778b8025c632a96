"""A whole run as those see it who follow it: its journal, its log file, its live document."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from scheduler.journal_reading import JournalReader
from scheduler.live_format import read_live
from tests.scheduler.builders import SWEEP, cell_spec, lease, limits, record, sweep_spec
from tests.scheduler.fakes import FakeNode
from tests.scheduler.test_driver import Nodes, go, plan_of, sealing
from tests.workers.test_actor import CELL, Simulated, opened
from workers.contract.live import watched_key
from workers.contract.outcome import Cause, Phase
from workers.contract.report import Orders
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Commit, Control, TrialEnd
from workers.node import Node
from workers.storage import open_store

LINES_A_TRY = 12
"""The most that a try may cost the journal, driver and node together."""


def test_a_run_leaves_its_journal_and_its_last_word(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    run = sealing(store, lambda given: Cause.NONE if given.index else Cause.CONTAINER_LOST)
    node = FakeNode("n1", run)
    end, _, _ = go(plan, tmp_path, Nodes([node]))
    live = read_live(store, SWEEP)
    assert live is not None
    assert (live.state, live.generation) == (end.state, 1)
    assert sum(each.passed for each in live.conditions) == 8
    assert sum(each.invalid for each in live.conditions) == 4
    (failure,) = live.failures
    assert (failure.cause, failure.attempts, failure.tries) == ("container_lost", 4, 8)

    told = list(JournalReader(store, SWEEP).lines())
    events = Counter(line.event for line in told)
    assert events["leased"] == events["ended"] == 16
    assert (told[0].event, told[-1].event) == ("driver_started", "driver_ended")
    assert {line.generation for line in told} == {1}
    file = tmp_path / "logs" / SWEEP / "driver-1.jsonl"
    said = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"] for line in said if line["event"] != "log"] == [e.event for e in told]


def test_a_second_driver_tells_under_its_own_number(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    go(plan, tmp_path, Nodes([FakeNode("n1", sealing(store, lambda _: Cause.NONE))]))
    go(plan, tmp_path, Nodes([]), log_format="text")
    log = (tmp_path / "logs" / SWEEP / "driver-2.log").read_text()
    assert log.endswith("driver 2  driver_ended: nothing was to be done\n")
    live = read_live(store, SWEEP)
    assert live is not None
    # Nothing was open: what the first driver showed stays.
    assert live.generation == 1


def test_wishes_reach_the_nodes_with_their_orders(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, count=1)
    store = open_store(plan.spec.store)
    attempt = plan.attempts[0].attempt
    store.put(watched_key(SWEEP, attempt), b"{}")
    asked = asyncio.Event()

    async def run(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
        async with asyncio.timeout(10.0):
            await asked.wait()
        return await sealing(store, lambda _: Cause.NONE)(cell, given, control)

    node = FakeNode("n1", run)
    heard: list[tuple[str, ...]] = []

    def follow(attempts: tuple[str, ...]) -> None:
        heard.append(attempts)
        if attempts:
            asked.set()

    node.node = Node("n1", SWEEP, 8, run, follow=follow)
    go(plan, tmp_path, Nodes([node]))
    assert (attempt,) in heard


def test_a_try_costs_the_journal_a_dozen_lines_at_most() -> None:
    told: list[str] = []

    async def run(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
        for phase in Phase:
            control.entered(phase)
        return TrialEnd(record(cell, given), Commit.WRITTEN)

    async def go_on() -> None:
        node = Node("n1", SWEEP, 4, run, tell=lambda event, text="", **about: told.append(event))
        cell = cell_spec()
        await node.exchange(
            Orders(generation=1, leases=(lease(cell),), cells={cell.cell: cell}, wait_s=5.0)
        )

    asyncio.run(go_on())
    of_driver = ["leased", "ended"]
    assert told == ["driver_heard", *["phase"] * len(Phase), "trial_ended"]
    assert len(told) - 1 + len(of_driver) <= LINES_A_TRY


def test_a_node_tells_of_itself_in_store_and_workspace(tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'store'}"
    sweep = sweep_spec(limits=limits(disk_free_mb=0), store=url)

    async def go_on() -> None:
        actor = Simulated()
        told = await opened(actor, tmp_path / "work", store=url)
        assert not told.error, told.error
        orders = Orders(generation=3, leases=(lease(CELL),), cells={CELL.cell: CELL}, wait_s=5.0)
        await actor.exchange(orders.to_json())
        await actor.close(1.0)

    asyncio.run(go_on())
    told = list(JournalReader(open_store(url), sweep.sweep).lines())
    events = [line.event for line in told]
    assert events == ["node_opened", "driver_heard", "trial_ended", "node_closed"]
    assert told[2].generation == 3
    assert len((tmp_path / "work/logs" / sweep.sweep / "n1.jsonl").read_text().splitlines()) >= 4


def test_a_driver_that_fails_leaves_word(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)

    def refuse() -> None:
        raise RuntimeError("a key is lacking")

    with pytest.raises(RuntimeError):
        go(plan, tmp_path, Nodes([]), before_nodes=refuse)
    told = list(JournalReader(open_store(plan.spec.store), SWEEP).lines())
    assert (told[-1].event, told[-1].text) == ("driver_failed", "RuntimeError: a key is lacking")
