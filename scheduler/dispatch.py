"""Stage 4, dispatch: Lease -> Orders.

The driver's loop, without Ray: it is given the nodes, the queue and the sweep's records. One
long poll a node is always under way; it carries new leases out, and progress back, and it is
the heartbeat that renews the node's leases.

Whatever is lost is found again: leases whose delivery is unknown are sent once more, reports
come back until they are acknowledged, a lease that a living node knows nothing of is lost, and
before a lost attempt is leased again the store is asked whether its try had finished.

Nothing is leased before every node of an earlier driver has said what it runs, or has been given
up: that is adopted, and not started again. A node that falls silent is given up after a term,
and is asked again once its leases are over: it may have been frozen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from scheduler.clocks import skew_text
from scheduler.errors import (
    ClusterError,
    ClusterLostError,
    NodeGoneError,
    NodeLostError,
    NodeSilentError,
    NodeSpareError,
    NoNodeError,
)
from scheduler.handover import Handover
from scheduler.lending import Lender
from scheduler.manifest import SweepBudget
from scheduler.node_line import NodeLine
from scheduler.node_source import DEFAULT_PAUSES, NodeHandle, NodeSource, Pauses, Search
from scheduler.permits import ProviderControl
from scheduler.progress import Views
from scheduler.queue import WorkQueue
from scheduler.queue.patience import out_of_patience, poison_text
from scheduler.recovery import Records, Recovery
from scheduler.stop import AnyStop, GiveWay, StopSignal
from scheduler.tail import may_take
from scheduler.view import Audience, Observer, RunningOn, SweepEnd
from workers.contract.outcome import Cause
from workers.contract.spec import CellSpec, SweepSpec

__all__ = ["STOPPED", "Dispatcher", "NodeHandle", "NodeSource", "Pauses"]

STOPPED = "the operator stopped the sweep"
EndState = Literal["settled", "interrupted", "infrastructure", "budget"]


class Dispatcher:
    """Runs the attempts of a queue on nodes until they are settled, or cannot be."""

    def __init__(
        self,
        sweep: SweepSpec,
        cells: Mapping[str, CellSpec],
        queue: WorkQueue,
        records: Records,
        nodes: NodeSource,
        observer: Observer,
        stop: StopSignal,
        *,
        generation: int,
        lender: Lender | None = None,
        newer: Callable[[], Awaitable[GiveWay | None]] | None = None,
        audience: Audience | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        pauses: Pauses = DEFAULT_PAUSES,
    ) -> None:
        """Starts nothing yet.

        Args:
            sweep: what every trial shares.
            cells: every cell of the queue's attempts by id.
            queue: filled, with what is committed already.
            records: the sweep's records in the store.
            nodes: where nodes come from.
            observer: told of everything.
            stop: the operator's wish.
            generation: of this driver; the queue's epochs carry it too.
            lender: of the sweep's budget; null: there is none.
            newer: looks whether a newer driver runs the sweep; null: nobody can.
            audience: who follows it beside the observer; null: nobody.
            clock: monotonic seconds; the queue's clock.
            wall: seconds since 1970; compared with the nodes', and never measured with.
            pauses: how long to wait for what.
        """
        self._sweep = sweep
        self._cells = cells
        self._queue = queue
        self._nodes = nodes
        self._observer = observer
        self._stop = stop
        self._handover = Handover(
            sweep.sweep,
            observer,
            finish_s=sweep.limits.lease_term_s,
            cancel_s=pauses.cancel,
        )
        self._generation = generation
        self._lender = lender or Lender(SweepBudget())
        self._providers = ProviderControl(sweep.endpoints, clock)
        self._newer = newer
        self._audience = audience or Audience()
        self._clock = clock
        self._wall = wall
        self._pauses = pauses
        self._recovery = Recovery(
            sweep.sweep, cells, queue, records, observer, clock=clock, spawn=self._spawn
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._lines: dict[str, NodeLine] = {}
        self._gone: dict[str, str] = {}
        """Nodes that were given up, and why."""
        self._awaited: set[str] = set()
        """Adopted nodes that have not said yet what they run."""
        self._skewed: set[str] = set()
        """Nodes of whose clock the observer was told."""
        self._lost = ""
        """Why nothing can be run any more."""
        self._search = Search(clock())
        self._cancelling_since: float | None = None
        self._views = Views(sweep.sweep, cells, queue, clock())
        self._poisoned = self._breaker_changes = self._expired = 0

    def running(self) -> tuple[RunningOn, ...]:
        """The tries that run, as their nodes said last."""
        return tuple(RunningOn(n, t) for n, line in self._lines.items() for t in line.running)

    async def run(self) -> SweepEnd:
        """Runs to the end; whatever was started here is over when it returns or raises."""
        try:
            end = await self._loop()
        finally:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._show(self._clock(), last=True)
        return end

    async def _loop(self) -> SweepEnd:
        find_at = view_at = newer_at = self._clock()
        finding: asyncio.Task[None] | None = None
        looking: asyncio.Task[None] | None = None
        while True:
            now = self._clock()
            if self._failure is not None:
                raise self._failure
            self._expire(now)
            if now >= find_at and (finding is None or finding.done()):
                finding = self._spawn(self._find())
                find_at = now + self._pauses.find
            if now >= newer_at and (looking is None or looking.done()):
                looking = self._spawn(self._look_for_newer())
                newer_at = now + self._pauses.newer
            if now >= view_at:
                self._show(now)
                view_at = now + self._pauses.view
            end = self._end(now)
            if end is not None:
                return end
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._pauses.tick)

    # Tasks

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    # Nodes

    async def _find(self) -> None:
        try:
            handles = await self._nodes.find()
        except ClusterLostError as error:
            self._lost = str(error)
            return
        except ClusterError as error:
            self._gone["cluster"] = str(error)
            self._search.is_hopeless = isinstance(error, NoNodeError)
            if not self._search.is_hopeless:
                self._observer.note(str(error))
            return
        finally:
            self._search.looked(self._clock())
        # All of them at once: none may be given leases before the adopted ones have spoken.
        self._awaited.update(handle.name for handle in handles if handle.adopted)
        for handle in handles:
            if handle.adopted:
                self._lender.adopted(handle.name)
            line = self._lines[handle.name] = self._new_line(handle)
            self._gone.pop(handle.name, None)
            self._spawn(self._serve(handle, line))

    def _new_line(self, handle: NodeHandle) -> NodeLine:
        return NodeLine(
            handle.name,
            self._generation,
            self._cells,
            self._queue,
            self._recovery,
            AnyStop(self._stop, self._handover.stop),
            self._clock,
            may_lease=lambda: not self._awaited and may_take(handle.name, self._queue, self._lines),
            lender=self._lender,
            providers=self._providers,
            wall=self._wall,
            metrics=handle.metrics,
            watched=self._audience.watched,
        )

    async def _serve(self, handle: NodeHandle, line: NodeLine) -> None:
        """Speaks with one node until it is dead for certain, or obeys a newer driver."""
        while await self._converse(handle, line):
            # Until its leases are over it hears nothing: orders would renew what is given away.
            await asyncio.sleep(1.5 * self._sweep.limits.lease_term_s)
            if self._is_replaced(line):
                return
            line = self._new_line(handle)

    async def _converse(self, handle: NodeHandle, line: NodeLine) -> bool:
        """Speaks with a node; whether it has only fallen silent."""
        while True:
            orders = line.orders(self._pauses.poll)
            self._audience.leased(line.name, orders.leases)
            try:
                async with asyncio.timeout(orders.wait_s + self._pauses.answer):
                    progress = await handle.exchange(orders)
            except (NodeLostError, NodeGoneError, NodeSpareError) as error:
                if not self._is_replaced(line):
                    self._over(line, error)
                return False
            except (NodeSilentError, TimeoutError) as error:
                if self._clock() - line.answered_at > self._sweep.limits.lease_term_s:
                    why = error.reason if isinstance(error, NodeSilentError) else "no answer"
                    self._give_up(line, f"{why}; its leases run until their term is over")
                    return True
                if isinstance(error, NodeSilentError):
                    await asyncio.sleep(self._pauses.poll)
                continue
            if progress.generation > self._generation:
                why = (
                    f"driver {progress.generation} has taken over sweep {self._sweep.sweep} "
                    f"and its nodes; this one was driver {self._generation}"
                )
                self._to_give_way(GiveWay(why, at_once=True))
                return False
            line.take(orders, progress)
            self._heard(line)
            self._wake.set()

    def _heard(self, line: NodeLine) -> None:
        """A node has answered: for the first time, again, or as ever."""
        if line.name in self._awaited:
            self._awaited.discard(line.name)
            self._observer.note(f"node {line.name} is adopted with {line.adopted} running trials")
        if self._lines.get(line.name) is not line:
            self._lines[line.name] = line
            self._gone.pop(line.name, None)
            self._observer.note(f"node {line.name} answers again")
        if line.skew_s is not None and line.name not in self._skewed:
            self._skewed.add(line.name)
            self._observer.note(skew_text(f"the clock of node {line.name}", line.skew_s))

    def _is_replaced(self, line: NodeLine) -> bool:
        """Whether another node has its name: leases, permits and budget of it are that one's."""
        return self._lines.get(line.name, line) is not line

    def _over(self, line: NodeLine, error: NodeLostError | NodeGoneError | NodeSpareError) -> None:
        if isinstance(error, NodeGoneError):
            self._give_up(line, f"{error.reason}; its leases run until their term is over")
            return
        if isinstance(error, NodeLostError):
            self._give_up(line, error.reason)
            self._lender.lost(line.name)
        else:
            self._providers.lost(line.name)
            self._lender.returned(line.name)
            self._lines.pop(line.name, None)
            self._observer.note(f"node {line.name} is given back: {error.reason}")
        # Of a spare one those of orders that were never answered, while the sweep is being stopped.
        lost = self._queue.node_lost(line.name)
        self._recovery.lost(lost, Cause.NODE_LOST, str(error))

    def _give_up(self, line: NodeLine, reason: str) -> None:
        if self._is_replaced(line):
            return
        self._providers.lost(line.name)  # others may wait for the permits that it was lent
        self._awaited.discard(line.name)
        if self._lines.pop(line.name, None) is None:
            return  # Nobody had heard of it since it was given up.
        self._gone[line.name] = reason
        self._observer.note(f"node {line.name} is lost: {reason}")

    def _expire(self, now: float) -> None:
        self._providers.look(self._queue, self._observer, now)
        lost = self._queue.expire(now)
        if lost:
            self._expired += len(lost)
            self._observer.note(f"{len(lost)} leases expired")
            why = "the lease's term and grace passed without the node"
            self._recovery.lost(lost, Cause.LEASE_EXPIRED, why)
        for cell in self._queue.poisoned[self._poisoned :]:
            self._observer.note(poison_text(self._cells[cell], self._sweep.limits))
        self._poisoned = len(self._queue.poisoned)
        for change in self._queue.breaker_changes[self._breaker_changes :]:
            self._observer.note(str(change))
        self._breaker_changes = len(self._queue.breaker_changes)

    # A newer driver

    async def _look_for_newer(self) -> None:
        if self._newer and not self._handover.way and (found := await self._newer()):
            self._to_give_way(found)

    def _to_give_way(self, way: GiveWay) -> None:
        self._handover.begin(way, self._queue.held_count(), self._clock())
        self._wake.set()

    # The end

    def _end(self, now: float) -> SweepEnd | None:
        if self._handover.way is not None:
            busy = self._recovery.busy or self._queue.held_count() > 0
            return self._handover.end(self._handover.way, busy=busy, now=now)
        if self._lost:
            return self._sweep_end("infrastructure", self._lost)
        if any(not line.draining for line in self._lines.values()):
            self._search.found(now)
        if self._stop.cancelling and self._cancelling_since is None:
            self._cancelling_since = now
        bound = self._pauses.cancel
        if self._cancelling_since is not None and now > self._cancelling_since + bound:
            reason = f"{self._queue.held_count()} trials did not end within {bound:g} s"
            return self._sweep_end("interrupted", reason)
        if self._recovery.busy:
            return None
        spent = self._lender.reached
        if self._queue.settled:
            parked = sum(each.parked for each in self._queue.counts().values())
            if parked and spent is not None and not self._stop.draining:
                return self._sweep_end("budget", spent)
            if parked:
                return self._sweep_end("interrupted", f"{parked} attempts wait for a resume")
            return self._sweep_end("settled", "")
        if self._queue.held_count():
            return None
        if self._stop.draining:
            return self._sweep_end("interrupted", STOPPED)
        if spent is not None:
            return self._sweep_end("budget", spent)
        if self._search.is_in_vain(self._pauses.no_node):
            return self._sweep_end("infrastructure", self._why_no_node())
        why = out_of_patience(self._queue, self._lines, self._sweep.limits, now)
        return self._sweep_end("infrastructure", why) if why else None

    def _sweep_end(self, state: EndState, reason: str) -> SweepEnd:
        return SweepEnd(self._sweep.sweep, state, reason)

    def _why_no_node(self) -> str:
        reasons = {name: line.draining for name, line in self._lines.items()} | self._gone
        told = "; ".join(f"{name}: {why}" for name, why in sorted(reasons.items()))
        return f"no node could work ({told or 'there was none'})"

    # The view

    def _show(self, now: float, *, last: bool = False) -> None:
        view = self._views.at(now, nodes=len(self._lines), stopping=self._stop.draining, last=last)
        self._observer.moved(
            replace(
                view,
                node_views=tuple(line.view for line in self._lines.values()),
                lost_nodes=sum(name != "cluster" for name in self._gone),
                expired_leases=self._expired,
                throttled_endpoints=self._providers.throttled(),
                budget_share=self._lender.share,
            )
        )
