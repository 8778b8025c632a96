"""The node's composition root, without Ray, Docker or a model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.builders import cell_spec, lease, limits, record, sweep_spec
from workers.actor import NodeActor, NodeSetupError, Opened, OpenOptions
from workers.config import NodeConfig
from workers.contract.endpoint import Endpoint
from workers.contract.report import Orders, Progress
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


async def opened(actor: NodeActor, workspace: Path, **changes: Any) -> Opened:
    options = OpenOptions(
        node="n1", workspace=str(workspace), n_concurrent=3, task_memory_mb=1024
    ).model_copy(update=changes)
    sweep = sweep_spec(limits=limits(disk_free_mb=0))
    return Opened.from_json(await actor.open(sweep.to_json(), options.to_json()), "opened")


def test_an_open_node_says_its_slots_and_its_process(tmp_path: Path) -> None:
    async def test() -> None:
        found = await opened(Simulated(), tmp_path / "new" / "work")
        assert found == Opened(node="n1", pid=os.getpid(), slots=3)
        assert (tmp_path / "new" / "work").is_dir()

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
