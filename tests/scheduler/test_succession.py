"""One driver after the other: who waits, who gives way, and what the operator hears."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from scheduler.claims import Claims
from scheduler.stop import StopSignal
from scheduler.store_calls import StoreCalls
from scheduler.succession import Succession
from tests.scheduler.builders import SWEEP, limits
from tests.scheduler.fakes import FakeObserver
from workers.storage import open_store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.claims.LOOK_PAUSE_S", 0.01)


class Listener(FakeObserver):
    """Says when it was told something."""

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()

    def note(self, text: str) -> None:
        super().note(text)
        self.told.set()


class Scene:
    """Two drivers of one sweep."""

    def __init__(self, folder: Path) -> None:
        self.calls = StoreCalls(open_store(f"file://{folder}"))
        self.older, self.newer = Claims(self.calls, SWEEP), Claims(self.calls, SWEEP)
        self.observer = Listener()

    def of(self, claims: Claims) -> Succession:
        return Succession(claims, limits(), self.observer)


def run(folder: Path, test: Any) -> None:
    async def made() -> None:
        scene = Scene(folder)
        try:
            async with asyncio.timeout(20.0):
                await test(scene)
        finally:
            scene.calls.end()

    work: Coroutine[Any, Any, None] = made()
    asyncio.run(work)


def test_the_older_gives_way_in_a_sentence_that_names_the_newer(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.older.claim()
        assert await scene.of(scene.older).newer() is None
        await scene.newer.claim()
        found = await scene.of(scene.older).newer()
        assert found is not None
        assert scene.newer.own is not None
        assert f"driver 2 on host {scene.newer.own.host}" in found.reason
        assert not found.at_once

    run(tmp_path, test)


def test_on_one_cluster_nobody_waits(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.older.claim("head:6379")
        async with scene.older.beating():
            await scene.newer.claim("head:6379")
            await scene.of(scene.newer).wait_for_older(StopSignal())
            found = await scene.of(scene.older).newer()
            assert found is not None
            assert found.at_once
        assert scene.observer.notes == []

    run(tmp_path, test)


def test_the_newer_waits_until_the_older_has_ended_and_says_so(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.older.claim()
        await scene.newer.claim()
        async with scene.older.beating():
            waiting = asyncio.create_task(scene.of(scene.newer).wait_for_older(StopSignal()))
            await scene.observer.told.wait()
            assert not waiting.done()
        await waiting
        (told,) = scene.observer.notes
        assert told.startswith("driver 1 on host")

    run(tmp_path, test)


def test_a_dead_driver_of_a_cluster_is_named_with_its_address(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.older.claim("head:6379")
        await scene.newer.claim()
        stop = StopSignal()
        stop.request()
        await scene.of(scene.newer).wait_for_older(stop)
        (told,) = scene.observer.notes
        assert "--ray-address" in told
        assert "head:6379" in told

    run(tmp_path, test)
