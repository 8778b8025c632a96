from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from tests.workers.store_doubles import Moody, file_store
from workers import showing as under_test
from workers.contract.live import live_trial_key, live_trial_prefix
from workers.showing import Look, Showing
from workers.storage import Store

SWEEP = "demo-20260101T000000Z"


def look(number: int) -> Callable[[], bytes]:
    return lambda: f"document {number}".encode()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():  # noqa: ASYNC110 - of threads: there is nothing to wait on
            await asyncio.sleep(0.005)


def run(work: Callable[[Showing], Coroutine[Any, Any, None]], store: Store | Moody) -> Showing:
    async def go() -> Showing:
        async with Showing(cast(Store, store), SWEEP, pause_s=0.01) as showing:
            await work(showing)
        return showing

    return asyncio.run(go())


def test_only_what_is_wanted_is_shown_and_all_of_it_goes(tmp_path: Path) -> None:
    store = file_store(tmp_path)

    async def work(showing: Showing) -> None:
        with showing.of("a", look), showing.of("b", look):
            await asyncio.sleep(0.03)
            assert not list(store.keys(live_trial_prefix(SWEEP)))
            showing.want(("a", "elsewhere"))
            await until(lambda: showing.shown.get("a", 0) >= 3)
            assert list(store.keys(live_trial_prefix(SWEEP))) == [live_trial_key(SWEEP, "a")]
            showing.want(())
            await until(lambda: not showing.shown)
            assert not list(store.keys(live_trial_prefix(SWEEP)))
            showing.want(("b",))
            await until(lambda: "b" in showing.shown)
        await until(lambda: not showing.shown)
        assert not list(store.keys(live_trial_prefix(SWEEP)))

    assert run(work, store).faults == 0


def test_what_is_shown_at_the_end_is_removed(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    kept = ExitStack()

    async def work(showing: Showing) -> None:
        kept.enter_context(showing.of("a", look))
        showing.want(("a",))
        await until(lambda: "a" in showing.shown)

    run(work, store)
    kept.close()
    assert not list(store.keys(live_trial_prefix(SWEEP)))


def test_a_driver_that_is_silent_wants_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "UNRENEWED_S", 0.05)

    async def work(showing: Showing) -> None:
        with showing.of("a", look):
            showing.want(("a",))
            await until(lambda: "a" in showing.shown)
            await until(lambda: not showing.shown)

    run(work, file_store(tmp_path))


def failing_look(_: int) -> Callable[[], bytes]:
    raise RuntimeError("nothing to be seen")


def failing_document(_: int) -> Callable[[], bytes]:
    def make() -> bytes:
        raise KeyError("half a document")

    return make


@pytest.mark.parametrize("bad", [failing_look, failing_document])
def test_a_trial_that_cannot_be_shown_does_not_notice(tmp_path: Path, bad: Look) -> None:
    async def work(showing: Showing) -> None:
        with showing.of("a", bad), showing.of("b", look):
            showing.want(("a", "b"))
            await until(lambda: showing.faults > 1 and showing.shown.get("b", 0) > 1)

    run(work, file_store(tmp_path))


def test_a_store_that_refuses_or_hangs_is_no_concern_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "CALL_S", 0.05)
    moody = Moody(file_store(tmp_path))
    moody.refuses = True

    async def work(showing: Showing) -> None:
        with showing.of("a", look):
            showing.want(("a",))
            await until(lambda: showing.faults > 1)
            moody.refuses = False
            moody.free.clear()
            await until(lambda: showing.faults > 3)
            moody.free.set()
            await until(lambda: bool(moody.puts))

    run(work, moody)
    assert moody.most_under_way == 1
