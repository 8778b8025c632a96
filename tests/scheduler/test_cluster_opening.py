"""How nodes are opened on a cluster's machines, some of which do not answer; no Ray."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.cluster import Cluster, ClusterOptions
from scheduler.errors import ClusterError
from scheduler.ray_client import RayHost
from tests.scheduler.builders import sweep_spec
from tests.scheduler.dispatching import run
from workers.actor import NodeActor, Opened

HANGS, REFUSES = "hangs", "refuses"


class FakeActor:
    """Opens at once, unless its machine's name says otherwise."""

    def __init__(self, host: RayHost, asked: asyncio.Event) -> None:
        self.host = host
        self._asked = asked

    async def ask(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        if method == "close":
            return True
        self._asked.set()
        if self.host.name.startswith(HANGS):
            await asyncio.Event().wait()
        error = "no Docker engine" if self.host.name.startswith(REFUSES) else ""
        node = json.loads(arguments[1])["node"]
        return Opened(node=node, pid=os.getpid(), slots=2, error=error).to_json()


class FakeRay:
    """A cluster of machines that are there."""

    def __init__(self) -> None:
        self.head = ""
        self.machines: list[str] = []
        self.made: list[str] = []
        self.killed: list[str] = []
        self.asked_for: list[int] = []
        self.opening = asyncio.Event()

    async def connect(self, address: str, log: Path) -> None:
        pass

    async def leave(self) -> None:
        pass

    async def hosts(self) -> list[RayHost]:
        return [RayHost(f"id-{name}", name, declares=True) for name in self.machines]

    async def names(self) -> Sequence[str]:
        return ()

    async def make(
        self, actor_class: type[NodeActor], host: RayHost, name: str | None, *arguments: Any
    ) -> FakeActor:
        self.made.append(host.name)
        return FakeActor(host, self.opening)

    async def kill(self, actor: FakeActor) -> None:
        self.killed.append(actor.host.name)

    async def ask_for(self, nodes: int, spare: Collection[str] = ()) -> None:
        self.asked_for.append(nodes)


@asynccontextmanager
async def cluster(
    monkeypatch: pytest.MonkeyPatch, home: Path, *machines: str, max_nodes: int | None = None
) -> AsyncIterator[tuple[Cluster, FakeRay]]:
    ray = FakeRay()
    ray.machines += machines
    monkeypatch.setattr("scheduler.cluster.RayClient", lambda **_: ray)
    options = ClusterOptions(
        address="head:6379",
        home=home,
        n_concurrent=2,
        task_memory_mb=1,
        close_s=0.0,
        max_nodes=max_nodes,
        open_attempts=lambda: 4,
    )
    async with asyncio.timeout(20.0), Cluster(sweep_spec(), options) as found:
        yield found, ray


async def names(found: Cluster) -> list[str]:
    return sorted(node.name for node in await found.find())


def test_a_machine_that_does_not_answer_keeps_no_other_from_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("scheduler.openings.TOGETHER_S", 0.05)

    async def test() -> None:
        async with cluster(monkeypatch, tmp_path, HANGS, "a", "b") as (found, ray):
            assert await names(found) == ["a", "b"]
            ray.machines.append("later")
            assert await names(found) == ["later"]
            assert await names(found) == []
            assert sorted(ray.made) == ["a", "b", HANGS, "later"]

    run(test)


def test_a_node_that_is_being_opened_when_the_sweep_ends_is_ended_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def test() -> None:
        async with cluster(monkeypatch, tmp_path, HANGS) as (found, ray):
            looking = asyncio.create_task(found.find())
            await ray.opening.wait()
            # As the dispatcher ends its tasks.
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        assert ray.killed == [HANGS]

    run(test)


def test_another_node_is_asked_for_in_place_of_one_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def test(most: int) -> list[int]:
        async with cluster(monkeypatch, tmp_path, REFUSES, max_nodes=most) as (found, ray):
            for _ in range(3):
                with pytest.raises(ClusterError, match="no Docker engine"):
                    await found.find()
            assert await found.find() == []
            return ray.asked_for

    # Four attempts, two a node: two nodes, beside the one whose place nobody can use.
    assert asyncio.run(test(8)) == [2, 2, 2, 3]
    assert asyncio.run(test(2)) == [2, 2, 2, 2]
