"""Stage 4, dispatch: Lease -> Orders.

The driver's loop, without Ray: it is given the nodes, the queue and the sweep's records. One
long poll a node is always under way; it carries new leases out, and progress back, and it is
the heartbeat that renews the node's leases.

Whatever is lost is found again: leases whose delivery is unknown are sent once more, reports
come back until they are acknowledged, a lease that a living node knows nothing of is lost, and
before a lost attempt is leased again the store is asked whether its try had finished.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from scheduler.errors import ClusterError, NodeLostError, NodeSilentError, NoNodeError
from scheduler.node_line import NodeLine
from scheduler.progress import Pace, sweep_view
from scheduler.queue import WorkQueue
from scheduler.recovery import Records, Recovery
from scheduler.stop import StopSignal
from scheduler.view import Observer, SweepEnd
from workers.contract.outcome import Cause
from workers.contract.report import Orders, Progress
from workers.contract.spec import CellSpec, SweepSpec

STOPPED = "the operator stopped the sweep"
EndState = Literal["settled", "interrupted", "infrastructure"]


class NodeHandle(Protocol):
    """A node, as the driver speaks to it."""

    @property
    def name(self) -> str:
        """As records carry it."""
        ...

    async def exchange(self, orders: Orders) -> Progress:
        """Gives orders and waits for the answer.

        Raises:
            NodeLostError: the node is dead for certain.
            NodeSilentError: there is no answer.
        """
        ...


class NodeSource(Protocol):
    """Where nodes come from."""

    async def find(self) -> Sequence[NodeHandle]:
        """The nodes that have joined since the last call; bounded in time.

        Raises:
            NoNodeError: there is no node, and none will come.
            ClusterError: nodes cannot be asked for right now.
        """
        ...


@dataclass(frozen=True)
class Pauses:
    """How long the loop waits for what; seconds."""

    poll: float = 1.0
    """A node's long poll."""
    answer: float = 10.0
    """Beyond the poll, until an answer counts as lost and the orders are sent again."""
    tick: float = 0.25
    """Between looks at leases, nodes and the operator's wish."""
    view: float = 1.0
    """Between views shown to the observer."""
    find: float = 2.0
    """Between looks for new nodes."""
    no_node: float = 30.0
    """Without a node that can work, until the sweep ends for that."""
    cancel: float = 180.0
    """From the operator's second request until running trials are abandoned."""


DEFAULT_PAUSES = Pauses()


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
        clock: Callable[[], float] = time.monotonic,
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
            clock: monotonic seconds; the queue's clock.
            pauses: how long to wait for what.
        """
        self._sweep = sweep
        self._cells = cells
        self._queue = queue
        self._nodes = nodes
        self._observer = observer
        self._stop = stop
        self._generation = generation
        self._clock = clock
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
        self._obsolete = ""
        """Why another driver runs the sweep now."""
        self._hopeless = False
        """No node will come any more."""
        self._able_at = clock()
        """When a node that can work was last known."""
        self._cancelling_since: float | None = None
        self._pace = Pace(clock())
        self._shown = self._settled()
        self._poisoned = 0

    async def run(self) -> SweepEnd:
        """Runs to the end; whatever was started here is over when it returns or raises."""
        try:
            end = await self._loop()
        finally:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._show(self._clock())
        return end

    async def _loop(self) -> SweepEnd:
        find_at = view_at = self._clock()
        finding: asyncio.Task[None] | None = None
        while True:
            now = self._clock()
            if self._failure is not None:
                raise self._failure
            self._expire(now)
            if now >= find_at and (finding is None or finding.done()):
                finding = self._spawn(self._find())
                find_at = now + self._pauses.find
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
        except NoNodeError as error:
            self._gone["cluster"] = str(error)
            self._hopeless = True
            return
        except ClusterError as error:
            self._gone["cluster"] = str(error)
            self._observer.note(str(error))
            return
        for handle in handles:
            line = NodeLine(
                handle.name,
                self._generation,
                self._cells,
                self._queue,
                self._recovery,
                self._stop,
                self._clock,
            )
            self._lines[handle.name] = line
            self._gone.pop(handle.name, None)
            self._spawn(self._serve(handle, line))

    async def _serve(self, handle: NodeHandle, line: NodeLine) -> None:
        """Speaks with one node for as long as it lives and this driver is its driver."""
        while True:
            orders = line.orders(self._pauses.poll)
            try:
                async with asyncio.timeout(orders.wait_s + self._pauses.answer):
                    progress = await handle.exchange(orders)
            except NodeLostError as error:
                self._give_up(line, error.reason)
                lost = self._queue.node_lost(line.name)
                self._recovery.lost(lost, Cause.NODE_LOST, str(error))
                return
            except (NodeSilentError, TimeoutError) as error:
                if self._silent_too_long(line):
                    why = error.reason if isinstance(error, NodeSilentError) else "no answer"
                    self._give_up(line, f"{why}; its leases run until their term is over")
                    return
                if isinstance(error, NodeSilentError):
                    await asyncio.sleep(self._pauses.poll)
                continue
            if progress.generation > self._generation:
                self._obsolete = (
                    f"driver generation {progress.generation} has taken over sweep "
                    f"{self._sweep.sweep}; this one is {self._generation}"
                )
                self._wake.set()
                return
            line.take(orders, progress)
            self._wake.set()

    def _silent_too_long(self, line: NodeLine) -> bool:
        return self._clock() - line.answered_at > self._sweep.limits.lease_term_s

    def _give_up(self, line: NodeLine, reason: str) -> None:
        if self._lines.get(line.name) is line:
            del self._lines[line.name]
        self._gone[line.name] = reason
        self._observer.note(f"node {line.name} is lost: {reason}")

    def _expire(self, now: float) -> None:
        lost = self._queue.expire(now)
        if lost:
            self._observer.note(f"{len(lost)} leases expired")
            self._recovery.lost(
                lost, Cause.LEASE_EXPIRED, "the lease's term and grace passed without the node"
            )
        for cell in self._queue.poisoned[self._poisoned :]:
            self._observer.note(f"cell {cell} is left alone: {self._poison_text(cell)}")
        self._poisoned = len(self._queue.poisoned)

    def _poison_text(self, cell: str) -> str:
        spec = self._cells[cell]
        return (
            f"{self._sweep.limits.poison} tries in a row of {spec.task.name} under "
            f"{spec.condition.condition} gave no verdict"
        )

    # The end

    def _end(self, now: float) -> SweepEnd | None:
        if self._obsolete:
            return self._sweep_end("infrastructure", self._obsolete)
        bound = self._pauses.cancel
        able = any(not line.draining for line in self._lines.values())
        if able:
            self._able_at = now
        if self._stop.cancelling and self._cancelling_since is None:
            self._cancelling_since = now
        if self._cancelling_since is not None and now > self._cancelling_since + bound:
            reason = f"{self._queue.held_count()} trials did not end within {bound:g} s"
            return self._sweep_end("interrupted", reason)
        if self._recovery.busy:
            return None
        if self._queue.settled:
            parked = sum(each.parked for each in self._queue.counts().values())
            if parked:
                return self._sweep_end("interrupted", f"{parked} attempts wait for a resume")
            return self._sweep_end("settled", "")
        if self._queue.held_count():
            return None
        if self._stop.draining:
            return self._sweep_end("interrupted", STOPPED)
        if not able and (self._hopeless or now - self._able_at > self._pauses.no_node):
            return self._sweep_end("infrastructure", self._why_no_node())
        return None

    def _sweep_end(self, state: EndState, reason: str) -> SweepEnd:
        return SweepEnd(self._sweep.sweep, state, reason)

    def _why_no_node(self) -> str:
        reasons = {name: line.draining for name, line in self._lines.items()} | self._gone
        told = "; ".join(f"{name}: {why}" for name, why in sorted(reasons.items()))
        return f"no node could work ({told or 'there was none'})"

    # The view

    def _show(self, now: float) -> None:
        settled = self._settled()
        self._pace.note(now, settled - self._shown)
        self._shown = settled
        self._observer.moved(
            sweep_view(
                self._sweep.sweep,
                self._queue.counts(),
                self._pace,
                now,
                nodes=len(self._lines),
                stopping=self._stop.draining,
            )
        )

    def _settled(self) -> int:
        counts = self._queue.counts().values()
        return sum(each.passed + each.failed + each.dead for each in counts)
