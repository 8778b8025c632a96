"""Ends that only a driver sees: nodes that die or fall silent, the operator's wish, the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.driver import drive, reap_here
from scheduler.manifest import SweepBudget
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd
from tests.classification.cases import case
from tests.classification.nodes import ProcessNodes, opener
from tests.classification.trials import COUNTING, SAY, WAIT_S, at_work, docker
from tests.scheduler.builders import Planned
from tests.scheduler.fakes import FakeObserver
from tests.workers.trial.stage import BUNDLES, Reply, Stage, stage
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord, result_key
from workers.contract.spec import CellSpec, SweepSpec, attempt_id

SWEEP_S = 180.0


@dataclass(frozen=True)
class OneAttempt:
    """A plan of one attempt (``scheduler.driver.Plan``)."""

    spec: SweepSpec
    cells: Sequence[CellSpec]
    attempts: Sequence[Planned]
    budget: SweepBudget


@dataclass
class Scene:
    """A sweep that runs."""

    here: Stage
    nodes: ProcessNodes
    stop: StopSignal


@dataclass
class Ended:
    """A sweep that has ended."""

    end: SweepEnd
    records: list[TryRecord]
    committed: bool


async def sweep(
    folder: Path,
    happens: Callable[[Scene], Awaitable[None]],
    *replies: Reply,
    budget: SweepBudget | None = None,
    **limits: float,
) -> Ended:
    """A sweep of one attempt to which something happens once its agent is at work."""
    async with stage(folder, *replies, verifier=COUNTING, **limits) as here:
        cell, spec = here.cell, here.sweep
        attempt = attempt_id(spec.sweep, cell.condition.digest, cell.task.digest, 0)
        plan = OneAttempt(spec, (cell,), (Planned(attempt, cell.cell, 0),), budget or SweepBudget())
        observer, stop = FakeObserver(), StopSignal()
        opened: asyncio.Future[ProcessNodes] = asyncio.get_running_loop().create_future()
        running = asyncio.ensure_future(
            drive(
                plan,
                spec.store,
                n_concurrent=1,
                ray_address=None,
                observer=observer,
                stop=stop,
                home=folder,
                open_nodes=opener(BUNDLES, opened.set_result),
            )
        )
        try:
            nodes = await asyncio.wait_for(opened, WAIT_S)
            working = asyncio.ensure_future(at_work(here))
            await asyncio.wait({working, running}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                raise AssertionError(f"the sweep ended before its agent worked: {running.result()}")
            await working
            await happens(Scene(here, nodes, stop))
            end = await asyncio.wait_for(running, SWEEP_S)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        for node in nodes.started:
            await reap_here(node.name, BUNDLES)
        left = await docker("ps", "-aq", "--filter", f"label=apiary.sweep={spec.sweep}")
        assert not left, f"left in the engine: {left}"
        committed = await asyncio.to_thread(here.store.exists, result_key(spec.sweep, attempt))
        return Ended(end, observer.records, committed)


async def nothing(_: Scene) -> None:
    """The sweep ends as it will."""


def second_passed(ended: Ended) -> TryRecord:
    """The first of two tries; the other one passed, on another node."""
    first, second = ended.records
    assert ended.end.state == "settled"
    assert ended.committed
    assert second.verdict is Verdict.PASS
    assert second.node != first.node
    return first


@case("node", "its process is killed", "invalid harness node_lost prepare whole")
async def _lost(folder: Path) -> TryRecord:
    async def happens(scene: Scene) -> None:
        scene.nodes.wanted = 2
        scene.nodes.started[0].kill()

    return second_passed(await sweep(folder, happens, "sleep 600", SAY))


@case("node", "frozen past its lease", "invalid harness lease_expired prepare whole")
async def _expired(folder: Path) -> TryRecord:
    async def happens(scene: Scene) -> None:
        scene.nodes.wanted = 2
        scene.nodes.started[0].freeze()

    return second_passed(await sweep(folder, happens, "sleep 600", SAY, lease_term_s=4.0))


@case("operator", "Ctrl-C once: what runs is finished", "pass none none seal never")
async def _drained(folder: Path) -> TryRecord:
    async def happens(scene: Scene) -> None:
        scene.stop.request()

    ended = await sweep(folder, happens, f"sleep 2; {SAY}")
    (record,) = ended.records
    assert ended.committed
    return record


@case("operator", "Ctrl-C twice", "invalid operator cancelled drive on_resume")
async def _cancelled(folder: Path) -> TryRecord:
    async def happens(scene: Scene) -> None:
        scene.stop.request()
        scene.stop.request()

    ended = await sweep(folder, happens, "sleep 600")
    (record,) = ended.records
    assert ended.end.state == "interrupted"
    assert not ended.committed
    return record


@case("operator", "the sweep's budget spent", "invalid operator sweep_budget drive on_resume")
async def _budget(folder: Path) -> TryRecord:
    ended = await sweep(folder, nothing, "true", "true", budget=SweepBudget(max_calls=1))
    (record,) = ended.records
    assert ended.end.state == "budget"
    return record
