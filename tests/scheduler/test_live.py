"""What a driver shows of its sweep, in a store that may refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from scheduler import live as under_test
from scheduler.live import LiveView
from scheduler.live_document import Named
from scheduler.live_format import LiveSweep, live_key, read_live
from scheduler.view import ConditionView, NodeView, RunningOn, Standing, SweepEnd, SweepView
from tests.scheduler.builders import SWEEP, attempts, cells, lease, record
from tests.workers.store_doubles import Moody, file_store
from workers.contract.live import WatchWish, live_trial_key, watched_key
from workers.contract.outcome import Cause
from workers.contract.report import RunningTry
from workers.contract.result import Usage
from workers.contract.spec import Epoch
from workers.storage import Store

CELL = next(iter(cells().values()))
ATTEMPT = attempts(cells(), 1)[0].attempt
SETTLED = SweepEnd(SWEEP, "settled")


def view(running: int = 1, passed: int = 0, **more: Any) -> SweepView:
    row = ConditionView("condition-0", 5, running, passed, 2, 0, 1)
    standing = Standing("condition-0", "greet", "workflow", "committed", "fail", "model", "wrong")
    return SweepView(
        SWEEP,
        (row,),
        10.0,
        6.0,
        50.0,
        1,
        False,
        standings={standing: 2},
        node_views=(NodeView("n1", running, 3, ""),),
        **more,
    )


def live_view(store: Store | Moody, generation: int = 1, **more: Any) -> LiveView:
    return LiveView(
        cast(Store, store),
        SWEEP,
        generation,
        {ATTEMPT: Named("buzz-native/greet", "condition-0", 4)}.get,
        pause_s=0.01,
        **more,
    )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():  # noqa: ASYNC110 - of threads: there is nothing to wait on
            await asyncio.sleep(0.005)


def shown(store: Store) -> LiveSweep:
    found = read_live(store, SWEEP)
    assert found is not None
    return found


def test_it_shows_counts_failures_nodes_and_trials(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    try_ = RunningTry(attempt=ATTEMPT, epoch=Epoch(1, 7), phase="drive")

    async def go() -> None:
        async with live_view(store) as live:
            live.running = lambda: (RunningOn("n1", try_),)
            for number in range(5):
                failed = record(
                    CELL, lease(CELL, number), Cause.CONTAINER_LOST, detail=f"d{number}"
                )
                usage = Usage(calls=2, input_tokens=10, cost_usd=0.5)
                live.ended(failed.model_copy(update={"usage": usage}))
            live.note("a node is lost")
            live.moved(view())
            await until(lambda: read_live(store, SWEEP) is not None)
            during = shown(store)
            assert during.state == "running"
            assert not during.has_ended
            live.end = SETTLED
        after = shown(store)
        assert after.state == "settled"
        assert after.number > during.number

    asyncio.run(go())
    document = shown(store)
    (trial,) = document.running
    assert (trial.task, trial.index, trial.node, trial.phase) == (
        "buzz-native/greet",
        4,
        "n1",
        "drive",
    )
    assert [(f.blame, f.cause, f.attempts, f.tries) for f in document.failures] == [
        ("model", "wrong", 2, 0),
        ("harness", "container_lost", 0, 5),
    ]
    assert [each.detail for each in document.failures[1].examples] == ["d4", "d3", "d2"]
    assert document.spending.cost_usd == pytest.approx(2.5)
    assert document.notes == ("a node is lost",)
    assert document.nodes[0].free_slots == 3


def test_nothing_is_written_while_nothing_moves_but_signs_of_life(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    moody = Moody(store)
    now = [0.0]

    async def go() -> None:
        async with live_view(moody, clock=lambda: now[0]) as live:
            live.moved(view())
            await until(lambda: len(moody.puts) == 1)
            live.moved(view())
            await asyncio.sleep(0.1)
            assert len(moody.puts) == 1
            now[0] += under_test.HEARTBEAT_S
            await until(lambda: len(moody.puts) == 2)
            live.moved(view(passed=1))
            await until(lambda: len(moody.puts) == 3)

    asyncio.run(go())


def test_the_newest_driver_counts(tmp_path: Path) -> None:
    store = file_store(tmp_path)

    async def go() -> None:
        async with live_view(store, 1) as old:
            old.moved(view())
            await until(lambda: read_live(store, SWEEP) is not None)
            async with live_view(store, 2) as new:
                new.moved(view(running=2))
                await until(lambda: shown(store).generation == 2)
                old.moved(view(passed=9))
                await asyncio.sleep(0.1)
                assert shown(store).generation == 2
                new.end = SETTLED
            old.end = SETTLED
        assert shown(store).generation == 2
        assert shown(store).conditions[0].passed == 0

    asyncio.run(go())


def test_a_later_format_is_not_written_over(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    store.put(live_key(SWEEP), json.dumps({"schema_version": 9, "generation": 5}).encode())

    async def go() -> None:
        async with live_view(store, 2) as live:
            live.moved(view())
            live.end = SETTLED

    asyncio.run(go())
    assert json.loads(store.get(live_key(SWEEP)))["generation"] == 5


@pytest.mark.parametrize(("end", "complete"), [(SETTLED, True), (None, False)])
def test_what_earlier_drivers_spent_is_counted_on(
    tmp_path: Path, end: SweepEnd | None, complete: bool
) -> None:
    store = file_store(tmp_path)
    ended = record(CELL, lease(CELL)).model_copy(update={"usage": Usage(calls=1, cost_usd=1.0)})

    async def go(generation: int) -> None:
        async with live_view(store, generation) as live:
            live.ended(ended)
            live.moved(view())
            live.end = SETTLED

    asyncio.run(go(1))
    if end is None:
        # Its driver was killed.
        killed = shown(store).model_copy(update={"state": "running"})
        store.put(live_key(SWEEP), killed.to_json().encode())
    asyncio.run(go(2))
    spending = shown(store).spending
    assert (spending.calls, spending.cost_usd) == (2, 2.0)
    assert spending.complete is complete


def test_without_a_document_earlier_spending_is_unknown(tmp_path: Path) -> None:
    store = file_store(tmp_path)

    async def go() -> None:
        async with live_view(store, 2) as live:
            live.moved(view())
            live.end = SETTLED

    asyncio.run(go())
    assert not shown(store).spending.complete


def test_a_store_that_refuses_and_one_that_hangs_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "CALL_S", 0.05)
    monkeypatch.setattr(under_test, "LAST_S", 0.1)
    store = file_store(tmp_path)
    moody = Moody(store)
    moody.refuses = True

    async def go() -> None:
        async with asyncio.timeout(10.0):
            async with live_view(moody) as live:
                live.moved(view())
                await until(lambda: live.faults > 0)
                moody.refuses = False
                await until(lambda: read_live(store, SWEEP) is not None)
                moody.free.clear()
                live.moved(view(passed=1))
                before = live.faults
                await until(lambda: live.faults > before + 1)
                live.end = SETTLED

    try:
        asyncio.run(go())
    finally:
        moody.free.set()
    assert moody.most_under_way == 1


def test_it_hears_who_is_followed_and_tidies_up(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    wish = WatchWish(watcher="w", beat=1).to_json().encode()

    async def go() -> None:
        async with live_view(store) as live:
            live.moved(view())
            store.put(watched_key(SWEEP, ATTEMPT), wish)
            store.put(live_trial_key(SWEEP, ATTEMPT), b"left by a node that died")
            await until(lambda: live.watched == (ATTEMPT,))
            live.end = SETTLED

    asyncio.run(go())
    assert not store.exists(watched_key(SWEEP, ATTEMPT))
    assert not store.exists(live_trial_key(SWEEP, ATTEMPT))


def test_a_driver_that_gives_way_leaves_the_last_word_to_the_other(tmp_path: Path) -> None:
    store = file_store(tmp_path)

    async def go() -> None:
        async with live_view(store) as live:
            live.moved(view())
            await until(lambda: read_live(store, SWEEP) is not None)
            live.end = SweepEnd(SWEEP, "infrastructure", "another", gave_way=True)

    asyncio.run(go())
    assert shown(store).state == "running"


def test_a_driver_that_fails_says_so(tmp_path: Path) -> None:
    store = file_store(tmp_path)

    async def go() -> None:
        async with live_view(store) as live:
            live.moved(view())
            raise KeyError("a bug")

    with pytest.raises(KeyError):
        asyncio.run(go())
    assert (shown(store).state, shown(store).reason) == ("failed", "KeyError: 'a bug'")
