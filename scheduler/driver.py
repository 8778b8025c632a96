"""The composition root of a run: store, queue, cluster and dispatch, joined.

The same function starts a sweep and resumes it: the queue is rebuilt from the store, and what
is committed is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from scheduler.claims import Claims
from scheduler.clocks import skew_text
from scheduler.cluster import Cluster, ClusterOptions
from scheduler.commit import Ledger, Rebuilt
from scheduler.dispatch import STOPPED, Dispatcher, NodeSource
from scheduler.journaling import open_journal
from scheduler.lending import Lender
from scheduler.live import LiveView, first_view, names_of
from scheduler.local_ray import WORKSPACE
from scheduler.manifest import SweepBudget
from scheduler.node_source import DEFAULT_PAUSES, SCALED_PAUSES
from scheduler.plan import canary_shares
from scheduler.progress import Standings
from scheduler.queue import WorkQueue
from scheduler.retry import UNSPENT, DeadRetry
from scheduler.spending import earlier_spending, noted
from scheduler.stop import StopSignal
from scheduler.store_calls import StoreCalls
from scheduler.succession import Succession
from scheduler.view import Audience, Observer, SweepEnd, Watched
from workers.admission import largest
from workers.contract.spec import CellSpec, SweepSpec
from workers.journal import LogFormat
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

    @property
    def budget(self) -> SweepBudget:
        """What all of it may spend."""
        ...


class Nodes(NodeSource, Protocol):
    """The nodes of a sweep (``scheduler.cluster.Cluster``)."""

    @property
    def untidy_nodes(self) -> Sequence[str]:
        """Once they were given back: those that had not ended their trials."""
        ...

    def let_be(self) -> None:
        """A newer driver adopts them: they are not ended when they are given back."""
        ...


GARBAGE = (100_000, 20, 20)
"""Thresholds of Python's search for cyclic garbage while a sweep runs."""

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
    before_nodes: Callable[[], None] = lambda: None,
    retry: DeadRetry | None = None,
    node_metrics: str = "",
    log_format: LogFormat = "json",
    max_nodes: int | None = None,
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
        before_nodes: called where something is open, before any node is started; what it raises
            is raised here.
        retry: which dead attempts get fresh tries.
        node_metrics: ``address:port`` for the metrics of a node of this machine; empty: none.
        log_format: of the logs that driver and nodes write.
        max_nodes: the cluster is asked for as many nodes as open attempts need, and for no more
            than these; null: those that are there are used.

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
            before_nodes=before_nodes,
            retry=retry,
            node_metrics=node_metrics,
            log_format=log_format,
            max_nodes=max_nodes,
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
    before_nodes: Callable[[], None] = lambda: None,
    retry: DeadRetry | None = None,
    node_metrics: str = "",
    log_format: LogFormat = "json",
    max_nodes: int | None = None,
    open_nodes: OpenNodes = Cluster,
    reap: Reap = reap_here,
) -> SweepEnd:
    """``run_sweep`` as a coroutine.

    ``open_nodes`` and ``reap`` are replaced where nodes are simulated.
    """
    spec = plan.spec
    cells = {cell.cell: cell for cell in plan.cells}
    async with AsyncExitStack() as owned:
        ledger = await owned.enter_async_context(Ledger(open_store(store_url), spec.sweep))
        claims = Claims(ledger.calls, spec.sweep)
        generation = await claims.claim(ray_address)
        ledger.begin(generation)
        # Left last: a newer driver that waits for this one's end may start when it is told.
        await owned.enter_async_context(claims.beating())
        journal = await owned.enter_async_context(
            open_journal(ledger.calls.store, spec.sweep, generation, home, log_format)
        )
        journal.begun(len(plan.attempts))
        observer = Watched(observer, journal)
        succession = Succession(claims, spec.limits, observer)
        await succession.wait_for_older(stop)
        await tell_store_skew(ledger.calls, observer)
        rebuilt = await ledger.rebuild(
            plan.attempts, generation, retry=retry, max_tries=spec.limits.max_tries
        )
        if retry is not None:
            observer.note(f"dead attempts that get fresh tries: {rebuilt.revived}")
        queue = fill_queue(plan, cells, rebuilt, generation)
        if queue.settled:
            return SweepEnd(spec.sweep, "settled", f"nothing is open in {spec.sweep}", idle=True)
        if stop.draining:
            end = SweepEnd(spec.sweep, "interrupted", STOPPED)
            journal.over(end)
            return end
        lender = await _lender(plan, ledger.calls, generation)
        if lender.reached is not None:
            end = SweepEnd(spec.sweep, "budget", lender.reached)
            journal.over(end)
            return end
        before_nodes()
        await owned.enter_async_context(
            noted(ledger.calls, spec.sweep, generation, lender, observer.note)
        )
        live = LiveView(ledger.calls.store, spec.sweep, generation, names_of(plan.attempts, cells))
        await owned.enter_async_context(live)
        observer = Watched(observer, live)
        first = first_view(spec.sweep, queue)
        # What earlier drivers left shows while the nodes are being started.
        observer.moved(replace(first, standings=Standings(cells).of(queue.standings)))
        task = largest(plan.cells)
        options = ClusterOptions(
            address=ray_address,
            home=home,
            n_concurrent=n_concurrent,
            task_memory_mb=task.memory_mb,
            task_cpus=task.cpus,
            close_s=2 * spec.limits.teardown_s,
            node_metrics=node_metrics,
            log_format=log_format,
            generation=generation,
            max_nodes=max_nodes,
            open_attempts=lambda: queue.held_count() if stop.draining else queue.unsettled,
        )
        if max_nodes is not None:
            observer.note(f"asking the cluster for the nodes that are needed, {max_nodes} at most")
        if ray_address is None:
            observer.note("starting Ray and a node on this machine")
        owned.enter_context(rare_searches())
        async with open_nodes(spec, options) as nodes:
            dispatcher = Dispatcher(
                spec,
                cells,
                queue,
                ledger,
                nodes,
                observer,
                stop,
                generation=generation,
                lender=lender,
                newer=succession.newer,
                audience=Audience(watched=lambda: live.watched, leased=journal.leased),
                pauses=DEFAULT_PAUSES if max_nodes is None else SCALED_PAUSES,
            )
            live.running = dispatcher.running
            end = replace(await dispatcher.run(), revived=rebuilt.revived)
            if end.nodes_taken_over:
                nodes.let_be()
        if ray_address is None:
            # Only nodes of this machine: what another's leaves goes when it is used again.
            for node in nodes.untidy_nodes:
                await reap(node, home / WORKSPACE)
        live.end = end
        journal.over(end)
        return end


@contextlib.contextmanager
def rare_searches() -> Iterator[None]:
    """Lets Python look for cyclic garbage rarely.

    A sweep's attempts, which all stay, are looked through each time: with Python's own thresholds
    that is a third of a driver's work on 100,000 of them.
    """
    before = gc.get_threshold()
    gc.set_threshold(*GARBAGE)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _lender(plan: Plan, calls: StoreCalls, generation: int) -> Lender:
    """The sweep's budget, less what earlier drivers spent of it."""
    if plan.budget == SweepBudget() or generation == 1:
        return Lender(plan.budget)
    return Lender(plan.budget, await earlier_spending(calls, plan.spec.sweep))


async def tell_store_skew(calls: StoreCalls, observer: Observer) -> None:
    """Tells the observer if the store's clock is far from this machine's.

    Raises:
        StoreError: the store did not answer.
    """
    reading = await calls.read_clock()
    if reading is not None and reading.skew_s is not None:
        observer.note(skew_text(f"the clock of the store at {calls.store.url}", reading.skew_s))


def fill_queue(
    plan: Plan, cells: Mapping[str, CellSpec], rebuilt: Rebuilt, generation: int
) -> WorkQueue:
    """The queue of a sweep as the store has it."""
    queue = WorkQueue(generation, plan.spec.limits)
    endpoints = {
        name: ()
        if cell.canary == "nop" or cell.played(plan.spec.agent)
        else cell.condition.endpoints
        for name, cell in cells.items()
    }
    every = canary_shares(cells[each.cell] for each in plan.attempts)
    for each in plan.attempts:
        queue.enqueue(
            each.attempt,
            index=each.index,
            cell=each.cell,
            condition=cells[each.cell].condition.condition,
            spent=rebuilt.spent.get(each.attempt, UNSPENT),
            endpoints=endpoints[each.cell],
            every=every.get(cells[each.cell].condition.condition, 0),
            cause=rebuilt.causes.get(each.attempt),
        )
    for attempt, verdict in rebuilt.committed.items():
        queue.committed(attempt, verdict, rebuilt.causes.get(attempt))
    return queue
