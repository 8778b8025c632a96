"""Driver generations in a real file store: claimed once, and one driver after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from scheduler.claim_format import DriverBeat, DriverClaim, read_beat
from scheduler.claims import CLAIMS_AT_MOST, SILENT_S, Claims, Watch
from scheduler.errors import DriverClaimError
from scheduler.process import this_process
from scheduler.store_calls import StoreCalls
from tests.scheduler.builders import SWEEP
from workers.storage import Store, open_store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.claims.LOOK_PAUSE_S", 0.01)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}")


def run(store: Any, test: Callable[[Callable[[], Claims]], Coroutine[Any, Any, Any]]) -> Any:
    async def made() -> Any:
        calls = StoreCalls(store)
        try:
            async with asyncio.timeout(20.0):
                return await test(lambda: Claims(calls, SWEEP))
        finally:
            calls.end()

    return asyncio.run(made())


def test_generations_grow_and_no_two_drivers_share_one(store: Store) -> None:
    async def test(claims: Callable[[], Claims]) -> None:
        assert await claims().claim() == 1
        together = await asyncio.gather(*(claims().claim() for _ in range(5)))
        assert sorted(together) == [2, 3, 4, 5, 6]
        store.put(f"sweeps/{SWEEP}/drivers/40.json", b"{}")
        assert await claims().claim() == 41

    run(store, test)


def test_a_driver_that_is_always_too_late_gives_up() -> None:
    class Racing:
        url = "racing"

        def keys(self, prefix: str) -> list[str]:
            return []

        def create(self, key: str, data: bytes) -> bool:
            return False

    async def test(claims: Callable[[], Claims]) -> None:
        with pytest.raises(DriverClaimError, match=f"1 to {CLAIMS_AT_MOST}"):
            await claims().claim()

    run(Racing(), test)


def test_the_older_finds_the_newer_and_the_newer_the_older(store: Store) -> None:
    async def test(claims: Callable[[], Claims]) -> None:
        older, newer = claims(), claims()
        await older.claim("head:1")
        assert await older.newer() is None
        assert await older.older() == []
        async with older.beating():
            await newer.claim()
            assert await older.newer() == newer.own
            assert await newer.older() == [older.own]
        assert await newer.older() == []

    run(store, test)


def test_one_that_ends_is_waited_for_no_longer(store: Store) -> None:
    async def test(claims: Callable[[], Claims]) -> None:
        older, newer = claims(), claims()
        await older.claim()
        await newer.claim()
        assert older.own is not None
        paused = asyncio.Event()
        async with older.beating():
            waiting = asyncio.create_task(
                newer.wait_for(older.own, 60.0, give_up=lambda: False, waiting=paused.set)
            )
            await paused.wait()
            assert not waiting.done()
        assert await waiting

    run(store, test)


def test_one_whose_process_is_gone_is_marked_as_ended(store: Store) -> None:
    async def test(claims: Callable[[], Claims]) -> None:
        older, newer = claims(), claims()
        await older.claim()
        await newer.claim()
        assert older.own is not None
        dead = older.own.model_copy(update={"process": this_process() + "0"})
        assert await newer.wait_for(dead, 60.0, give_up=lambda: False, waiting=lambda: None)
        beat = read_beat(store, SWEEP, 1)
        assert beat is not None
        assert beat.ended

    run(store, test)


def test_waiting_is_bounded_and_ends_where_the_operator_stops(store: Store) -> None:
    async def test(claims: Callable[[], Claims]) -> None:
        older, newer = claims(), claims()
        await older.claim()
        await newer.claim()
        assert older.own is not None
        for bound, stopped in ((-1.0, False), (60.0, True)):
            is_over = await newer.wait_for(
                older.own, bound, give_up=lambda s=stopped: s, waiting=lambda: None
            )
            assert not is_over

    run(store, test)


def claim(**changes: Any) -> DriverClaim:
    values = {"sweep": SWEEP, "generation": 1, "host": "a", "started_at": "2026"}
    return DriverClaim.model_validate({**values, **changes})


def test_a_driver_of_another_machine_is_dead_once_its_beat_stands_still() -> None:
    watch = Watch(claim(), 0.0)
    assert not watch.is_over(DriverBeat(beat=7), 1.0)
    assert not watch.is_over(DriverBeat(beat=8), SILENT_S)
    assert not watch.is_over(DriverBeat(beat=8), 2 * SILENT_S)
    assert watch.is_over(DriverBeat(beat=8), 2 * SILENT_S + 1.0)


def test_a_driver_that_never_beat_gets_the_same_time() -> None:
    watch = Watch(claim(), 0.0)
    assert not watch.is_over(None, SILENT_S)
    assert watch.is_over(None, SILENT_S + 1.0)


def test_an_end_is_an_end_and_a_living_process_is_none() -> None:
    assert Watch(claim(), 0.0).is_over(DriverBeat(beat=1, ended=True), 0.0)
    assert not Watch(claim(process=this_process()), 0.0).is_over(DriverBeat(beat=1), 0.0)
    assert Watch(claim(process=this_process() + "0"), 0.0).is_over(DriverBeat(beat=1), 0.0)
