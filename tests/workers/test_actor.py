"""The node's composition root, without Ray, Docker or a model."""

from __future__ import annotations

import asyncio
import os
import threading
import urllib.request
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from tests.scheduler.builders import cell_spec, lease, limits, record, sweep_spec
from workers.actor import NodeActor, NodeSetupError, Opened, OpenOptions
from workers.config import NodeConfig
from workers.contract.endpoint import Endpoint
from workers.contract.report import Orders, Progress, protocol_version
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction

CELL = cell_spec()


class Simulated(NodeActor):
    """Trials pass at once; what they share is a line in ``released``."""

    refuses: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.released: list[str] = []

    async def assemble(
        self, sweep: SweepSpec, options: OpenOptions, config: NodeConfig, owned: AsyncExitStack
    ) -> TrialFunction:
        owned.callback(self.released.append, "tools")
        if self.refuses is not None:
            raise self.refuses

        async def run(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
            return TrialEnd(record(cell, given, node=options.node), Commit.WRITTEN)

        return run


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


async def opened(actor: NodeActor, workspace: Path, *, store: str = "", **changes: Any) -> Opened:
    options = OpenOptions(
        node="n1", workspace=str(workspace), n_concurrent=3, task_memory_mb=1024
    ).model_copy(update=changes)
    sweep = sweep_spec(limits=limits(disk_free_mb=0), **({"store": store} if store else {}))
    return Opened.from_json(await actor.open(sweep.to_json(), options.to_json()), "opened")


def test_an_open_node_says_its_slots_and_its_process(tmp_path: Path) -> None:
    async def test() -> None:
        found = await opened(Simulated(), tmp_path / "new" / "work")
        assert found == Opened(node="n1", pid=os.getpid(), slots=3)
        assert (tmp_path / "new" / "work").is_dir()

    run(test)


@pytest.mark.long
def test_its_metrics_are_where_the_driver_or_its_own_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        actor = Simulated()
        at = (await opened(actor, tmp_path, metrics="127.0.0.1:0")).metrics
        assert at.startswith("127.0.0.1:")

        def read() -> str:
            with urllib.request.urlopen(f"http://{at}/metrics", timeout=20) as answer:
                return str(answer.read().decode())

        text = await asyncio.to_thread(read)
        assert "apiary_slots 3.0" in text
        assert "apiary_trials_running 0.0" in text
        # Another driver adopts it, and finds them.
        assert (await opened(actor, tmp_path)).metrics == at
        await actor.close(1.0)
        with pytest.raises(URLError):
            await asyncio.to_thread(read)

        monkeypatch.setenv("APIARY_NODE_METRICS", "[::1]:0")
        own = Simulated()
        assert (await opened(own, tmp_path, metrics="127.0.0.1:0")).metrics.startswith("[::1]:")
        await own.close(1.0)

    run(test)


def test_a_place_for_metrics_that_cannot_be_meant_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        monkeypatch.setenv("APIARY_NODE_METRICS", "9465")
        found = await opened(Simulated(), tmp_path)
        assert found.error.startswith("APIARY_NODE_METRICS: expected address:port")
        assert found.metrics == ""

    run(test)


def test_leases_go_in_and_ends_come_out_as_text(tmp_path: Path) -> None:
    async def test() -> None:
        actor = Simulated()
        await opened(actor, tmp_path)
        orders = Orders(generation=1, leases=(lease(CELL),), cells={CELL.cell: CELL}, wait_s=5.0)
        answer = Progress.from_json(await actor.exchange(orders.to_json()), "progress")
        assert [each.node for each in answer.ended] == ["n1"]

    run(test)


@pytest.mark.parametrize(
    "refuses", [NodeSetupError("no Docker engine"), OSError("no Docker engine")]
)
def test_a_node_that_cannot_work_says_why_and_holds_nothing(
    refuses: Exception, tmp_path: Path
) -> None:
    async def test() -> None:
        actor = Simulated()
        actor.refuses = refuses
        found = await opened(actor, tmp_path)
        assert found.error == "no Docker engine"
        assert actor.released == ["tools"]
        with pytest.raises(RuntimeError, match="not open"):
            await actor.exchange(Orders(generation=1).to_json())

    run(test)


def test_closing_releases_what_trials_share_once_they_are_over(tmp_path: Path) -> None:
    async def test() -> None:
        actor = Simulated()
        await opened(actor, tmp_path)
        assert actor.released == []
        await actor.close(1.0)
        assert actor.released == ["tools"]
        answer = await actor.exchange(Orders(generation=1, wait_s=0.0).to_json())
        assert Progress.from_json(answer, "progress").draining

    run(test)


def test_a_node_with_too_little_disk_takes_no_leases(tmp_path: Path) -> None:
    async def test() -> None:
        actor = Simulated()
        sweep = sweep_spec(limits=limits(disk_free_mb=10**9))
        options = OpenOptions(node="n1", workspace=str(tmp_path), n_concurrent=1, task_memory_mb=1)
        await actor.open(sweep.to_json(), options.to_json())
        answer = await actor.exchange(Orders(generation=1, wait_s=0.0).to_json())
        assert "MB free" in Progress.from_json(answer, "progress").draining

    run(test)


def test_scripted_endpoints_without_an_address_are_served_by_the_node() -> None:
    async def test() -> None:
        own = Endpoint(provider="scripted")
        elsewhere = Endpoint(provider="scripted", base_url="http://models.example:9000/v1")
        real = Endpoint(provider="openai", api_key_env="SOME_KEY")
        sweep = sweep_spec(endpoints={"a": own, "b": elsewhere, "c": real, "d": own})
        async with AsyncExitStack() as owned:
            found = await NodeActor()._endpoints(sweep, owned)
            assert found["a"].base_url == found["d"].base_url
            assert (found["a"].base_url or "").startswith("http://127.0.0.1:")
            assert found["b"] is elsewhere
            assert found["c"] is real

    run(test)


def test_no_model_is_served_where_none_is_asked_for() -> None:
    async def test() -> None:
        sweep = sweep_spec(endpoints={"c": Endpoint(provider="openai", api_key_env="SOME_KEY")})
        async with AsyncExitStack() as owned:
            assert await NodeActor()._endpoints(sweep, owned) is sweep.endpoints

    run(test)


def test_an_open_node_is_adopted_as_it_is_with_its_new_slots(tmp_path: Path) -> None:
    async def test() -> None:
        actor = Simulated()
        await opened(actor, tmp_path)
        await actor.exchange(Orders(generation=4, wait_s=0.0).to_json())
        again = await opened(actor, tmp_path, n_concurrent=2)
        assert (again.error, again.slots, again.generation) == ("", 2, 4)
        answer = await actor.exchange(Orders(generation=5, wait_s=0.0).to_json())
        assert Progress.from_json(answer, "progress").free_slots == 2
        assert actor.released == []

    run(test)


def test_a_node_is_adopted_under_its_own_name_whatever_it_would_be_called_now(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        actor = Simulated()
        await opened(actor, tmp_path, node="box-1f3a9c")
        # Its machine has come back to Ray while the one that had died was still listed.
        again = await opened(actor, tmp_path, node="box")
        assert (again.error, again.node) == ("", "box-1f3a9c")

    run(test)


def test_a_driver_that_comes_while_the_node_is_opened_adopts_that_same_node(
    tmp_path: Path,
) -> None:
    class Slow(Simulated):
        """The first opening takes longer than any that follows."""

        def __init__(self) -> None:
            super().__init__()
            self.assembled = 0
            self.begun, self.goes_on = asyncio.Event(), asyncio.Event()

        async def assemble(self, *given: Any) -> TrialFunction:
            self.assembled += 1
            self.begun.set()
            if self.assembled == 1:
                await self.goes_on.wait()
            return await super().assemble(*given)

    async def test() -> None:
        actor = Slow()
        first = asyncio.create_task(opened(actor, tmp_path))
        await actor.begun.wait()
        second = asyncio.create_task(opened(actor, tmp_path))
        await asyncio.wait({second}, timeout=0.2)
        actor.goes_on.set()
        assert (await first).error == (await second).error == ""
        assert actor.assembled == 1

    run(test)


def test_a_node_of_other_settings_is_not_adopted(tmp_path: Path) -> None:
    async def test() -> None:
        actor = Simulated()
        await opened(actor, tmp_path)
        other = await opened(actor, tmp_path, store=f"file://{tmp_path}/other")
        assert "other settings" in other.error
        assert await actor.protocol() == protocol_version()

    run(test)


def test_a_node_that_a_newer_driver_took_over_is_not_closed_by_the_older(tmp_path: Path) -> None:
    async def test() -> None:
        actor = Simulated()
        await opened(actor, tmp_path)
        await actor.exchange(Orders(generation=2, wait_s=0.0).to_json())
        assert not await actor.close(1.0, 1)
        assert actor.released == []
        assert await actor.close(1.0, 2)
        assert actor.released == ["tools"]

    run(test)


def test_a_node_that_no_driver_speaks_to_ends_itself(tmp_path: Path) -> None:
    async def test() -> None:
        ended = asyncio.Event()

        class Orphan(Simulated):
            exit = staticmethod(ended.set)

        actor = Orphan()
        sweep = sweep_spec(limits=limits(disk_free_mb=0, orphan_s=0.05))
        options = OpenOptions(node="n1", workspace=str(tmp_path), n_concurrent=1, task_memory_mb=1)
        await actor.open(sweep.to_json(), options.to_json())
        for _ in range(5):
            await asyncio.sleep(0.02)
            await actor.exchange(Orders(generation=1, wait_s=0.0).to_json())
        assert not ended.is_set()
        await asyncio.wait_for(ended.wait(), 10.0)
        assert actor.released == ["tools"]

    run(test)


def test_a_node_whose_ray_is_gone_ends_itself_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.actor.LOOK_S", 0.01)
    monkeypatch.setattr("workers.actor.FORSAKEN_S", 0.05)

    async def test() -> None:
        ended = asyncio.Event()
        parents = [7]

        class Forsaken(Simulated):
            exit = staticmethod(ended.set)
            parent = staticmethod(lambda: parents[0])

        actor = Forsaken()
        await opened(actor, tmp_path)
        await asyncio.sleep(0.1)
        assert not ended.is_set()
        parents[0] = 1
        await asyncio.wait_for(ended.wait(), 10.0)

    run(test)


def test_an_actor_that_was_never_opened_ends_itself() -> None:
    ended = threading.Event()

    class Unopened(Simulated):
        exit = staticmethod(ended.set)

        def __init__(self) -> None:
            NodeActor.__init__(self, 0.05)

    Unopened()
    assert ended.wait(10.0)


@pytest.mark.docker
def test_a_node_that_lacks_a_key_says_which_and_holds_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        actor = NodeActor()
        endpoint = Endpoint(provider="openai", api_key_env="NO_SUCH_KEY_HERE")
        sweep = sweep_spec(
            store=f"file://{tmp_path}/store",
            limits=limits(disk_free_mb=0),
            endpoints={"gpt": endpoint},
        )
        options = OpenOptions(
            node="n1", workspace=str(tmp_path / "work"), n_concurrent=1, task_memory_mb=256
        )
        found = Opened.from_json(await actor.open(sweep.to_json(), options.to_json()), "opened")
        assert found.error == (
            "node n1: endpoint 'gpt' needs its key in the variable NO_SUCH_KEY_HERE, "
            "or in the file that NO_SUCH_KEY_HERE_FILE names"
        )

    run(test)
