from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.workers.container.engines import Bench, spec
from workers.container.api import MissingError
from workers.container.calls import Calls
from workers.container.events import EventStream
from workers.container.interface import ContainerError, ExitState

LABEL = "apiary.engine=test"
TIMEOUT_S = 30.0


class Source:
    """A stream that a test fills; None ends it."""

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.events.get, None)

    def close(self) -> None:
        self.events.put(None)


class FakeApi:
    """What the stream asks of an engine, answered by a test."""

    def __init__(self) -> None:
        self.sources: queue.Queue[Source] = queue.Queue()
        self.since: list[str] = []
        self.containers: dict[str, dict[str, Any]] = {}
        self.broken = False

    @contextlib.contextmanager
    def events(self, since: str, label: str, kinds: tuple[str, ...]) -> Iterator[Source]:
        assert (label, kinds) == (LABEL, ("kill", "die", "oom", "destroy", "exec_die"))
        if self.broken:
            raise ContainerError("the engine is away")
        source = Source()
        self.since.append(since)
        self.sources.put(source)
        yield source

    def listing(self, kind: str, labels: list[str], timeout_s: float) -> list[dict[str, str]]:
        assert (kind, labels) == ("containers", [LABEL])
        return [{"Id": name, "State": it["Status"]} for name, it in self.containers.items()]

    def inspect(self, container: str, timeout_s: float) -> dict[str, Any]:
        if "ExitCode" not in self.containers[container]:
            raise MissingError("just removed")
        return {"State": self.containers[container]}


@contextlib.asynccontextmanager
async def stream(api: FakeApi) -> AsyncIterator[EventStream]:
    calls = Calls(2)
    events = EventStream(api, calls, LABEL)
    await events.open(TIMEOUT_S)
    try:
        yield events
    finally:
        await events.close()
        await calls.close()


def event(container: str, action: str, time_ns: int, **attributes: str) -> dict[str, Any]:
    actor = {"ID": container, "Attributes": attributes}
    return {"Actor": actor, "Action": action, "timeNano": time_ns}


FAR = 10**19
"""Later than now, in nanoseconds."""


def test_deaths_and_oom_kills_reach_the_watch() -> None:
    async def scenario() -> None:
        api = FakeApi()
        # The engine lists it: the first comparison may come before or after the watch.
        api.containers["a"] = {"Status": "running"}
        async with stream(api) as events:
            watch = events.watch("a")
            source = api.sources.get()
            source.events.put(event("other", "die", FAR, exitCode="1"))
            source.events.put(event("a", "oom", FAR + 1))
            source.events.put(event("a", "die", FAR + 2, exitCode="137"))
            source.events.put(event("a", "destroy", FAR + 3))
            await asyncio.wait_for(watch.removed.wait(), TIMEOUT_S)
            assert (watch.ended.result(), watch.oom_events) == (137, 1)

    asyncio.run(scenario())


def test_a_watch_begun_in_another_thread_is_ahead_of_later_events() -> None:
    async def scenario() -> None:
        api = FakeApi()
        api.containers["a"] = {"Status": "running"}
        async with stream(api) as events:
            source = api.sources.get()
            await asyncio.to_thread(events.watch_from_thread, "a")
            source.events.put(event("a", "die", FAR, exitCode="0"))
            assert await asyncio.wait_for(events.watch("a").ended, TIMEOUT_S) == 0

    asyncio.run(scenario())


def test_a_container_destroyed_without_a_death_is_lost() -> None:
    async def scenario() -> None:
        api = FakeApi()
        async with stream(api) as events:
            watch = events.watch("a")
            api.sources.get().events.put(event("a", "destroy", FAR))
            assert await asyncio.wait_for(watch.ended, TIMEOUT_S) is None

    asyncio.run(scenario())


def test_an_event_that_comes_after_a_later_one_is_not_lost() -> None:
    async def scenario() -> None:
        api = FakeApi()
        api.containers |= {"a": {"Status": "running"}, "b": {"Status": "running"}}
        async with stream(api) as events:
            a, b = events.watch("a"), events.watch("b")
            command = a.execution("x")
            source = api.sources.get()
            source.events.put(event("b", "die", FAR + 9, exitCode="4"))
            source.events.put(event("a", "exec_die", FAR + 8, exitCode="5", execID="x"))
            source.events.put(event("a", "die", FAR + 7, exitCode="6"))
            async with asyncio.timeout(TIMEOUT_S):
                assert [await each for each in (b.ended, command, a.ended)] == [4, 5, 6]

    asyncio.run(scenario())


def test_a_broken_stream_is_opened_again_from_before_the_last_event_on() -> None:
    async def scenario() -> None:
        api = FakeApi()
        async with stream(api) as events:
            watch = events.watch("a")
            api.containers["a"] = {"Status": "running"}
            first = api.sources.get()
            first.events.put(event("a", "oom", FAR + 5))
            first.close()
            second = await asyncio.to_thread(api.sources.get, timeout=TIMEOUT_S)
            assert api.since[1] == "9999999999.000000005"
            second.events.put(event("a", "oom", FAR + 5))  # once more
            second.events.put(event("a", "die", FAR + 6, exitCode="3"))
            assert await asyncio.wait_for(watch.ended, TIMEOUT_S) == 3
            assert watch.oom_events == 1

    asyncio.run(scenario())


def test_deaths_while_the_stream_was_away_are_found_by_comparison() -> None:
    async def scenario() -> None:
        api = FakeApi()
        async with stream(api) as events:
            watches = [events.watch(name) for name in ("ended", "removed", "going", "running")]
            api.containers["ended"] = {"Status": "exited", "ExitCode": 9}
            api.containers["going"] = {"Status": "dead"}
            api.containers["running"] = {"Status": "running"}
            api.broken = True
            api.sources.get().close()
            api.broken = False
            ends = [await asyncio.wait_for(watch.ended, TIMEOUT_S) for watch in watches[:3]]
            assert ends == [9, None, None]
            assert not watches[3].ended.done()

    asyncio.run(scenario())


def test_a_stream_that_cannot_be_opened_is_an_error_in_time() -> None:
    async def scenario() -> None:
        api = FakeApi()
        api.broken = True
        calls = Calls(2)
        with pytest.raises(ContainerError, match="the engine is away"):
            await EventStream(api, calls, LABEL).open(0.05)
        await calls.close()

    asyncio.run(scenario())


@pytest.mark.docker
def test_a_real_death_while_the_stream_is_away_is_found(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            container = await engine.start(spec("sleep", "1000"), 60)
            other = await engine.start(spec("sleep", "1000"), 60)
            for victim in (container, other):
                engine._events._source.close()
                engine.api.kill(victim.id, 20)
                assert await victim.ended(TIMEOUT_S) == ExitState(
                    137, oom_killed=False, signalled=True
                )
            await container.remove(60)
            await other.remove(60)

    asyncio.run(scenario())
