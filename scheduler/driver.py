"""The composition root of a run: store, queue, cluster and dispatch, joined.

The same function starts a sweep and resumes it: the queue is rebuilt from the store, and what
is committed is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from scheduler.cluster import Cluster, ClusterOptions
from scheduler.commit import Ledger, Rebuilt
from scheduler.dispatch import STOPPED, Dispatcher, NodeSource
from scheduler.local_ray import WORKSPACE
from scheduler.queue import WorkQueue
from scheduler.retry import UNSPENT
from scheduler.stop import StopSignal
from scheduler.view import Observer, SweepEnd
from workers.contract.spec import CellSpec, SweepSpec
from workers.storage import open_store


class PlannedAttempt(Protocol):
    """An attempt of a plan."""

    @property
    def attempt(self) -> str:
        """Its id."""
        ...

    @property
    def cell(self) -> str:
        """Its cell's id."""
        ...

    @property
    def index(self) -> int:
        """Which of the cell's attempts."""
        ...


class Plan(Protocol):
    """What is needed of a plan here (``scheduler.plan.Plan``)."""

    @property
    def spec(self) -> SweepSpec:
        """What every trial shares."""
        ...

    @property
    def cells(self) -> Sequence[CellSpec]:
        """Every cell."""
        ...

    @property
    def attempts(self) -> Sequence[PlannedAttempt]:
        """In the order in which they should start."""
        ...


class Nodes(NodeSource, Protocol):
    """The nodes of a sweep (``scheduler.cluster.Cluster``)."""

    @property
    def untidy_nodes(self) -> Sequence[str]:
        """Once they were given back: those that had not ended their trials."""
        ...


OpenNodes = Callable[[SweepSpec, ClusterOptions], AbstractAsyncContextManager[Nodes]]
"""Gives a sweep its nodes, and takes them back."""

Reap = Callable[[str, Path], Awaitable[None]]
"""Removes what dead processes of a node, by its name and workspace, have left on this machine."""


def run_sweep(
    plan: Plan,
    store_url: str,
    *,
    n_concurrent: int | None,
    ray_address: str | None,
    observer: Observer,
    stop: StopSignal,
    home: Path | None = None,
) -> SweepEnd:
    """Runs a sweep until it is settled, stopped, or no node can work; blocks until then.

    The lock and the task archives are in the store already. Called in the main thread, so that
    the caller's signal handlers, which request to stop, are served while it waits.

    Args:
        plan: of a new sweep, or from a sweep's lock.
        store_url: where the sweep is.
        n_concurrent: trials at once on a node; null: by its cores and memory.
        ray_address: a running cluster; null: a local Ray is started and ended.
        observer: told of everything.
        stop: the operator's wish.
        home: for logs and a local node's workspace; null: ``.apiary`` of the working directory.

    Raises:
        DriverError: no driver generation could be claimed, or Ray could not be had.
        StoreError: the store cannot be opened or read.
    """
    return asyncio.run(
        drive(
            plan,
            store_url,
            n_concurrent=n_concurrent,
            ray_address=ray_address,
            observer=observer,
            stop=stop,
            home=home or Path(".apiary").absolute(),
        )
    )


async def reap_here(node: str, workspace: Path) -> None:
    """Removes the containers and folders of a node of this machine whose process is gone.

    An engine that does not answer is let be: ``apiary reap`` and the next run try again.
    """
    # Imported here because a run whose node ended well does not need Docker in the driver.
    from workers.container.docker import DockerEngine
    from workers.container.interface import ContainerError
    from workers.container.reap import reap
    from workers.container.scratch import folders_with_owners, remove_abandoned

    await asyncio.to_thread(remove_abandoned, folders_with_owners(workspace))
    with contextlib.suppress(ContainerError):
        engine = await DockerEngine.open(node)
        try:
            await reap(engine)
        finally:
            await engine.close()


async def drive(
    plan: Plan,
    store_url: str,
    *,
    n_concurrent: int | None,
    ray_address: str | None,
    observer: Observer,
    stop: StopSignal,
    home: Path,
    open_nodes: OpenNodes = Cluster,
    reap: Reap = reap_here,
) -> SweepEnd:
    """``run_sweep`` as a coroutine.

    ``open_nodes`` and ``reap`` are replaced where nodes are simulated.
    """
    spec = plan.spec
    cells = {cell.cell: cell for cell in plan.cells}
    async with Ledger(open_store(store_url), spec.sweep) as ledger:
        generation = await ledger.claim()
        queue = fill_queue(plan, cells, await ledger.rebuild(plan.attempts, generation), generation)
        if queue.settled:
            return SweepEnd(spec.sweep, "settled", f"nothing is open in {spec.sweep}", idle=True)
        if stop.draining:
            return SweepEnd(spec.sweep, "interrupted", STOPPED)
        options = ClusterOptions(
            address=ray_address,
            home=home,
            n_concurrent=n_concurrent,
            task_memory_mb=max(map(declared_memory_mb, plan.cells)),
            close_s=2 * spec.limits.teardown_s,
        )
        if ray_address is None:
            observer.note("starting Ray and a node on this machine")
        async with open_nodes(spec, options) as nodes:
            dispatcher = Dispatcher(
                spec, cells, queue, ledger, nodes, observer, stop, generation=generation
            )
            end = await dispatcher.run()
        if ray_address is None:
            # Only nodes of this machine: what another's leaves goes when it is used again.
            for node in nodes.untidy_nodes:
                await reap(node, home / WORKSPACE)
        return end


def fill_queue(
    plan: Plan, cells: Mapping[str, CellSpec], rebuilt: Rebuilt, generation: int
) -> WorkQueue:
    """The queue of a sweep as the store has it."""
    queue = WorkQueue(generation, plan.spec.limits)
    for each in plan.attempts:
        queue.enqueue(
            each.attempt,
            index=each.index,
            cell=each.cell,
            condition=cells[each.cell].condition.condition,
            spent=rebuilt.spent.get(each.attempt, UNSPENT),
        )
    for attempt, verdict in rebuilt.committed.items():
        queue.committed(attempt, verdict)
    return queue


def declared_memory_mb(cell: CellSpec) -> int:
    """The memory that a cell's container gets: the condition's word, else the task's."""
    override = cell.condition.environment
    if override is not None and override.override_memory_mb is not None:
        return override.override_memory_mb
    return cell.task.config.environment.memory_mb
