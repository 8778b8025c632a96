from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.container.engines import Bench, docker, spec
from workers.container.api import ConflictError, MissingError
from workers.container.calls import Calls
from workers.container.events import Watch
from workers.container.interface import ContainerError, ContainerLostError, ExitState
from workers.container.running import DockerContainer, Started

pytestmark = pytest.mark.long

ID = "f" * 64
TIMEOUT_S = 30.0
RUNNING = {"Running": True, "Pid": 5, "Status": "running", "OOMKilled": False, "ExitCode": 0}


class FakeApi:
    """An engine with one container, whose record a test sets; None: it knows none."""

    def __init__(self, record: dict[str, Any] | None) -> None:
        self.record = record
        self.kill_error: ContainerError | None = None
        self.remove_error: ContainerError | None = None

    def kill(self, container: str, timeout_s: float) -> None:
        if self.kill_error:
            raise self.kill_error

    def remove(self, container: str, timeout_s: float) -> None:
        if self.remove_error:
            raise self.remove_error

    def inspect(self, container: str, timeout_s: float) -> dict[str, Any]:
        if self.record is None:
            raise MissingError("no such container")
        return {"State": self.record}


class FakeEvents:
    """Remembers what was forgotten."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def forget(self, container: str) -> None:
        self.forgotten.append(container)


@contextlib.asynccontextmanager
async def container(
    api: FakeApi, counter: Path | None = None
) -> AsyncIterator[tuple[DockerContainer, Watch]]:
    calls, watch = Calls(1), Watch(ID)
    yield DockerContainer(Started(ID, 5, counter), watch, api, calls, FakeEvents()), watch
    await calls.close()


def test_a_death_that_is_not_proved_is_an_error() -> None:
    async def scenario() -> None:
        async with container(FakeApi(RUNNING)) as (it, _):
            with pytest.raises(ContainerError, match="kill container ffffffffffff: not"):
                await it.kill(0.05)
            with pytest.raises(ContainerError, match=r"not proved .* running with pid 5|not done"):
                await it.kill(1.2)

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [None, ConflictError("is not running")])
def test_the_record_proves_a_death_whose_event_is_lost(error: ContainerError | None) -> None:
    async def scenario() -> None:
        api = FakeApi(RUNNING | {"Running": False, "Pid": 0, "ExitCode": 4})
        api.kill_error = error
        async with container(api) as (it, _):
            assert await it.kill(TIMEOUT_S) == ExitState(4, oom_killed=False, signalled=True)

    asyncio.run(scenario())


def test_a_container_that_the_engine_does_not_know_is_lost() -> None:
    async def scenario() -> None:
        api = FakeApi(None)
        api.kill_error = MissingError("no such container")
        async with container(api) as (it, watch):
            with pytest.raises(ContainerLostError, match="gone"):
                await it.kill(TIMEOUT_S)
            assert watch.ended.result() is None
            with pytest.raises(ContainerLostError, match="has ended"):
                it.listen(3600)

    asyncio.run(scenario())


def test_a_late_oom_event_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.container.running.FLAG_S", 0.0)

    async def scenario() -> None:
        for flag in (True, False):
            async with container(FakeApi(RUNNING | {"OOMKilled": flag})) as (it, watch):
                watch.end(137)
                assert await it.ended(TIMEOUT_S) == ExitState(137, oom_killed=flag)
        async with container(FakeApi(None)) as (it, watch):
            watch.end(137)
            assert await it.ended(TIMEOUT_S) == ExitState(137, oom_killed=False)

    asyncio.run(scenario())


def test_a_flag_that_is_late_itself_is_waited_for() -> None:
    class Busy(FakeApi):
        looks = 0

        def inspect(self, container: str, timeout_s: float) -> dict[str, Any]:
            self.looks += 1
            self.record = RUNNING | {"OOMKilled": self.looks > 2}
            return super().inspect(container, timeout_s)

    async def scenario() -> None:
        async with container(Busy(RUNNING)) as (it, watch):
            watch.end(137)
            assert await it.ended(TIMEOUT_S) == ExitState(137, oom_killed=True)

    asyncio.run(scenario())


def test_the_counter_of_oom_kills_never_falls(tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"

    async def scenario() -> None:
        async with container(FakeApi(None), counter) as (it, watch):
            counter.write_text("oom_kill 2\n")
            assert it.oom_events() == 2
            counter.unlink()
            assert it.oom_events() == 2
            watch.oom_events = 3
            assert it.oom_events() == 3

    asyncio.run(scenario())


def test_a_removal_in_progress_is_waited_for() -> None:
    async def scenario() -> None:
        api = FakeApi(RUNNING)
        api.remove_error = ConflictError("removal is already in progress")
        async with container(api) as (it, watch):
            removal = asyncio.create_task(it.remove(TIMEOUT_S))
            done, _ = await asyncio.wait([removal], timeout=0.05)
            assert not done
            watch.removed.set()
            await removal
        async with container(api) as (it, _):
            with pytest.raises(ContainerError, match="remove container"):
                await it.remove(0.05)
            api.record = None
            await it.remove(TIMEOUT_S)

    asyncio.run(scenario())


@pytest.mark.docker
def test_a_removal_by_somebody_else_is_waited_for(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            for _ in range(3):
                it = await engine.start(spec("sleep", "1000"), 60)
                other = asyncio.create_task(asyncio.to_thread(docker, "rm", "--force", it.id))
                await it.remove(60)
                listed = engine.api.listing("containers", [f"apiary.node={bench.node}"], 20)
                assert listed == []
                await asyncio.wait([other])
                other.exception()  # it may find nothing to remove

    asyncio.run(scenario())


@pytest.mark.docker
def test_a_paused_container_is_killed_too(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sleep", "1000"), 60)
            docker("pause", it.id)
            assert (await it.kill(60)).exit_code == 137
            await it.remove(60)

    asyncio.run(scenario())
