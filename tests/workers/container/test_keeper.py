from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.workers.container.engines import Bench, docker, eventually
from tests.workers.container.test_reap import DEAD, container
from workers.container.interface import ContainerError
from workers.container.keeper import Keeper
from workers.container.reap import Reaped, Scope
from workers.container.scratch import OWNER_FILE, TRIALS


class Rounds(Keeper):
    """Rounds that fail, last, or do nothing, as a test says; it never asks an engine."""

    def __init__(self, *faults: BaseException | None) -> None:
        self.notes: list[str] = []
        super().__init__(None, Scope(), 0.0, 1.0, self.notes.append)  # type: ignore[arg-type]
        self.faults = list(faults)
        self.under_way = 0
        self.done = asyncio.Event()

    async def round(self) -> Reaped:
        assert self.under_way == 0, "two rounds overlap"
        self.under_way += 1
        await asyncio.sleep(0.01)
        self.under_way -= 1
        if not self.faults:
            self.done.set()
            return Reaped((), ())
        fault = self.faults.pop(0)
        if fault is not None:
            raise fault
        return Reaped((), ())


def test_a_failed_round_is_noted_and_the_next_one_comes() -> None:
    async def scenario() -> None:
        keeper = Rounds(ContainerError("no engine"), None, TimeoutError(), OSError("no folder"))
        task = asyncio.create_task(keeper.run())
        await asyncio.wait_for(keeper.done.wait(), 10)
        task.cancel()
        assert keeper.failures == 3
        assert [note.partition(": ")[2] for note in keeper.notes] == [
            "no engine",
            "not done within 1 s",
            "no folder",
        ]

    asyncio.run(scenario())


def test_a_last_round_that_fails_is_noted_and_stops_nothing() -> None:
    async def scenario() -> None:
        keeper = Rounds(ContainerError("no engine"))
        await keeper.last_round()
        assert keeper.notes == ["the reaper's last round: no engine"]
        await keeper.last_round()
        assert keeper.failures == 1

    asyncio.run(scenario())


@pytest.mark.docker
def test_what_dies_while_a_node_works_is_removed(bench: Bench) -> None:
    folder = bench.directory / TRIALS / "abandoned"

    async def scenario() -> None:
        async with bench.engine() as engine:
            keeper = Keeper(engine, Scope(bench.directory), 0.05)
            task = asyncio.create_task(keeper.run())
            dead = await asyncio.to_thread(leave, bench, folder)
            await asyncio.to_thread(
                eventually, lambda: not folder.exists() and keeper.removed["containers"] > 0
            )
            task.cancel()
            assert dead not in docker("ps", "-aq", "--no-trunc")

    asyncio.run(scenario())


def leave(bench: Bench, folder: Path) -> str:
    """A container and a folder of a process that is gone."""
    folder.mkdir(parents=True)
    (folder / OWNER_FILE).write_text(DEAD)
    return container(bench, node=bench.node, owner=DEAD)
