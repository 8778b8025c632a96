"""The composition root of a node: joins ``node`` and ``trial`` with the tools of a trial.

``scheduler.cluster`` makes a Ray actor of this class. Only JSON text goes in and out, so that
driver and node share formats and not Python objects; Ray itself is not imported here.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from workers import admission
from workers.allowance import Purse
from workers.config import ConfigError, NodeConfig, metrics_address, read_config
from workers.contract.base import Strict
from workers.contract.endpoint import Endpoint
from workers.contract.report import Orders, protocol_version
from workers.contract.spec import SweepSpec
from workers.contract.trial import TrialFunction
from workers.exposition import MetricsAddressError
from workers.journal import Journal, LogFormat
from workers.metrics import CONTAINERS, MODEL_PERMITS, RELAY_CONNECTIONS, NodeMetrics
from workers.node import Node, settle_memory
from workers.permits.node import NodePermits
from workers.showing import Showing
from workers.storage import ObservedStore, StoreError, open_store

LOGS = "logs"
"""The folder of a node's workspace that its log files are written to."""

THREADS = 32
"""Of the loop's default pool: asyncio's own has a few more than cores, and starves."""

REAP_S = 60.0
LOOK_S = 5.0
"""Between looks whether anybody wants this node."""
FORSAKEN_S = 60.0
"""After its last trial, until a node ends itself that its Ray has lost."""
CLOSE_S = 120.0
"""For the teardown of an orphan, which nothing else bounds."""
DOCKER_CALLS = 16


class NodeSetupError(Exception):
    """A node cannot get what its trials need; the message says what, and what to look at."""


class OpenOptions(Strict):
    """What a node is told beside the sweep."""

    node: str
    """Its name."""
    workspace: str | None
    """Null: the node's own configuration says."""
    n_concurrent: int | None
    """Trials at once; null: by cores and memory."""
    task_memory_mb: int
    """The largest declaration among the sweep's tasks."""
    task_cpus: int = 1
    """The same, of cores."""
    metrics: str = ""
    """``address:port`` for metrics where the node's own configuration does not say; empty: none."""
    log_format: LogFormat = "json"
    """Of the node's log file."""


class Opened(Strict):
    """What a node answers when it has been opened."""

    node: str
    pid: int
    slots: int
    generation: int = 0
    """The highest driver generation that it has heard of; 0: it is new."""
    error: str = ""
    """Why it cannot work; empty: it can."""
    metrics: str = ""
    """``host:port`` of its metrics; empty: it serves none."""


class NodeActor:
    """One node of one sweep; every method is a coroutine of one event loop."""

    def __init__(self, unopened_s: float | None = None) -> None:
        """Holds nothing yet.

        Args:
            unopened_s: after which it ends itself if it was not opened: its driver died before
                it could be; null: never.
        """
        self._unopened: threading.Timer | None = None
        if unopened_s is not None:
            # Not a task: Ray makes the object outside of the event loop.
            self._unopened = threading.Timer(unopened_s, self.exit)
            self._unopened.daemon = True
            self._unopened.start()
        self._owned = AsyncExitStack()
        self.purse = Purse()
        """What the trials may spend of the sweep's budget."""
        self.permits = NodePermits()
        """Of the trials' requests to providers."""
        self.metrics = NodeMetrics((), ())
        self._metrics_at = ""
        """Where they are served; empty: nowhere."""
        self._engine_problem: Callable[[], str] = lambda: ""
        """Why the engine should get no more work right now; empty: it may."""
        self._showing: Showing | None = None
        """Where running trials can be followed."""
        self._node: Node | None = None
        self._opened_for = ""
        """What it was opened for; another driver's sweep must be the same, its name need not."""
        self._opening = asyncio.Lock()
        self._orphan_watch: asyncio.Task[None] | None = None

    async def protocol(self) -> str:
        """The version of the protocol that it speaks; this method is the same in all of them."""
        return protocol_version()

    async def open(self, sweep_json: str, options_json: str) -> str:
        """Acquires everything that trials share; one that is open is adopted as it is.

        Returns:
            ``Opened`` as JSON; a node that cannot work holds nothing.
        """
        async with self._opening:  # a driver that comes meanwhile adopts what is there then
            return await self._open(sweep_json, options_json)

    async def _open(self, sweep_json: str, options_json: str) -> str:
        sweep = SweepSpec.from_json(sweep_json, "sweep")
        options = OpenOptions.from_json(options_json, "options")
        config = read_config(options.workspace)
        identity, error = sweep.to_json(), ""
        room = admission.Room(
            sweep.limits,
            n_concurrent=options.n_concurrent,
            cores=config.cores,
            memory_mb=config.memory_mb,
            task=admission.Declared(options.task_cpus, options.task_memory_mb),
        )
        if self._node is not None:
            return self._adopted(self._node, identity, room).to_json()
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(THREADS, thread_name_prefix="node")
        )
        try:
            config.workspace.mkdir(parents=True, exist_ok=True)
            self._serve_metrics(sweep, config, options)
            journal, showing = await self._shown(sweep, options, config)
            run_trial = await self.assemble(sweep, options, config, self._owned)
        except (NodeSetupError, OSError, StoreError, ConfigError, MetricsAddressError) as refused:
            await self._owned.aclose()
            error = str(refused)
        else:
            self._node = Node(
                options.node,
                sweep.sweep,
                room.slots,
                run_trial,
                fits=room.fits,
                purse=self.purse,
                permits=self.permits,
                tell=journal.tell,
                follow=showing.want,
                refusal=lambda: _refusal(sweep, config.workspace) or self._engine_problem(),
                wall=self.wall,
            )
            self._opened_for = identity
            settle_memory()
            if self._unopened is not None:
                self._unopened.cancel()
            self._orphan_watch = asyncio.create_task(self._end_if_orphaned(sweep.limits.orphan_s))
        return Opened(
            node=options.node,
            pid=os.getpid(),
            slots=room.slots,
            error=error,
            metrics="" if error else self._metrics_at,
        ).to_json()

    async def exchange(self, orders_json: str) -> str:
        """``Orders`` in, ``Progress`` out, both as JSON."""
        if self._node is None:
            raise RuntimeError("the node is not open")
        progress = await self._node.exchange(Orders.from_json(orders_json, "orders"))
        return progress.to_json()

    async def close(self, timeout_s: float, generation: int | None = None) -> bool:
        """Ends all trials with their teardown, bounded, then releases what they shared.

        Returns:
            Whether it did: not for a driver whose node has been taken over by a newer one.
        """
        if self._node is not None:
            if generation is not None and generation < self._node.generation:
                return False
            await self._node.close(timeout_s)
        await self._owned.aclose()
        return True

    def _adopted(self, node: Node, identity: str, room: admission.Room) -> Opened:
        """The answer of a node that was opened by a driver before."""
        error = ""
        if node.is_closing:
            error = "it was closed"
        elif identity == self._opened_for:
            node.slots, node.fits = room.slots, room.fits
        else:
            error = "it was opened for a sweep with other settings"
        return Opened(
            node=node.name,
            pid=os.getpid(),
            slots=room.slots,
            generation=node.generation,
            error=error,
            metrics=self._metrics_at,
        )

    async def _shown(
        self, sweep: SweepSpec, options: OpenOptions, config: NodeConfig
    ) -> tuple[Journal, Showing]:
        """What the node says to people; both end with it."""
        store = open_store(sweep.store)
        journal = Journal(
            store,
            sweep.sweep,
            options.node,
            file=config.workspace / LOGS / sweep.sweep / options.node,
            kind=options.log_format,
            generation=lambda: 0 if self._node is None else self._node.generation,
        )
        showing = self._showing = Showing(store, sweep.sweep)
        await self._owned.enter_async_context(journal)
        await self._owned.enter_async_context(showing)
        journal.tell("node_opened", f"process {os.getpid()} on host {platform.node()}")
        self._owned.callback(journal.tell, "node_closed")
        return journal, showing

    def _serve_metrics(self, sweep: SweepSpec, config: NodeConfig, options: OpenOptions) -> None:
        """Serves the node's metrics until it is closed; its own configuration comes first."""
        from workers.gateway.ledger import CallResult

        made = self.metrics = NodeMetrics(tuple(sweep.endpoints), tuple(CallResult))
        made.watch(lambda: self._node, config.workspace)
        where = metrics_address(config.metrics or options.metrics)
        self._metrics_at = self._owned.enter_context(made.served(where))
        if where is not None:
            store = open_store(sweep.store)
            self._owned.push_async_callback(made.keep, store, sweep.sweep, options.node)

    @staticmethod
    def wall() -> float:
        """This machine's wall clock, seconds since 1970."""
        return time.time()

    @staticmethod
    def parent() -> int:
        """The process that made this one, or another once that is over."""
        return os.getppid()

    @staticmethod
    def exit() -> None:
        """Ends this process, and with it the actor."""
        os._exit(0)

    async def _end_if_orphaned(self, after_s: float) -> None:
        """Ends the actor that no driver wants any more: its own driver died, and none came.

        Where Ray's node manager died, which made this process, no driver finds it any more.
        """
        parent = self.parent()
        left = after_s
        while left > 0:
            await asyncio.sleep(min(max(0.01, left), LOOK_S))
            bound = after_s if self.parent() == parent else min(after_s, FORSAKEN_S)
            left = bound - (self._node.idle_s if self._node is not None else bound)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.close(0.0)
        self.exit()

    async def assemble(
        self, sweep: SweepSpec, options: OpenOptions, config: NodeConfig, owned: AsyncExitStack
    ) -> TrialFunction:
        """The trial function and its tools; ``owned`` releases them.

        Raises:
            NodeSetupError: the engine or the gateway cannot be had.
            OSError: the machine refuses something.
            StoreError: the store cannot be opened.
        """
        # Imported here because the driver, which imports this module too, needs none of it.
        from workers.container.agent_bundle import AgentBundle
        from workers.container.docker import DockerEngine
        from workers.container.interface import ContainerError
        from workers.container.keeper import Keeper
        from workers.container.pace import STARTS_PER_CORE
        from workers.container.reap import Scope
        from workers.container.scratch import scratch_folder
        from workers.gateway.errors import GatewayError
        from workers.gateway.permits import LinedPermits
        from workers.gateway.server import Gateway
        from workers.owner_key import OwnerKeyError, owner_for
        from workers.trial.handoff import Tools
        from workers.trial.run import make_trial_function

        metrics, limits = self.metrics, sweep.limits
        try:
            engine = await DockerEngine.open(
                options.node,
                DOCKER_CALLS,
                starts_at_once=STARTS_PER_CORE * config.cores,
                starts_per_s=limits.container_starts_per_s,
                disk_free_mb=limits.disk_free_mb,
                door=config.door,
                heard=metrics.container_op,
                built=metrics.image_built,
            )
            metrics.exposition.live(CONTAINERS, lambda: engine.containers)
            owned.push_async_callback(engine.close)
            keeper = Keeper(
                engine,
                Scope(config.workspace),
                limits.reap_every_s,
                REAP_S,
                reaped=metrics.reaped,
            )
            await keeper.round()
            owned.push_async_callback(keeper.last_round)
            owned.callback(asyncio.create_task(keeper.run()).cancel)
            self._engine_problem = lambda: engine.disk_problem() or engine.untidy()
            endpoints = await self._endpoints(sweep, owned)
            self.permits.know(sweep.endpoints)
            for name in self.permits.limited():
                metrics.exposition.live(MODEL_PERMITS, partial(self.permits.permits, name), (name,))
            gateway = await owned.enter_async_context(
                Gateway(
                    endpoints,
                    config.environment,
                    purse=self.purse,
                    permits=LinedPermits(self.permits),
                    heard=metrics.model_request,
                )
            )
            owner = owner_for(sweep.relay, config.environment)
            if lacking := gateway.lacking():
                raise NodeSetupError(f"node {options.node}: {'; '.join(lacking)}")
        except (ContainerError, GatewayError, OwnerKeyError, TimeoutError) as error:
            raise NodeSetupError(str(error) or f"reaping took over {REAP_S:g} s") from error
        tools = Tools(
            engine=engine,
            gateway=gateway,
            store=ObservedStore(open_store(sweep.store), metrics.store_op),
            node=options.node,
            workspace=config.workspace,
            sockets=owned.enter_context(scratch_folder("node")),
            clock_skew_s=lambda: None if self._node is None else self._node.clock_skew_s,
            relay_event=metrics.relay_event,
            owner=owner,
            showing=self._showing,
        )
        metrics.exposition.live(
            RELAY_CONNECTIONS, lambda: sum(relay.connections for relay in tuple(tools.relays))
        )
        bundle = AgentBundle(engine, config.workspace, {"apiary.sweep": sweep.sweep})
        owned.callback(bundle.close)
        return make_trial_function(sweep.model_copy(update={"endpoints": endpoints}), tools, bundle)

    async def _endpoints(self, sweep: SweepSpec, owned: AsyncExitStack) -> dict[str, Endpoint]:
        """The sweep's endpoints; scripted ones without a base URL are served by this node."""
        own = [
            name
            for name, endpoint in sweep.endpoints.items()
            if endpoint.provider == "scripted" and endpoint.base_url is None
        ]
        if not own:
            return sweep.endpoints
        from workers.model.server import ScriptedModel

        model = await owned.enter_async_context(ScriptedModel(seed=sweep.seed))
        return {
            name: endpoint.model_copy(update={"base_url": model.base_url})
            if name in own
            else endpoint
            for name, endpoint in sweep.endpoints.items()
        }


def _refusal(sweep: SweepSpec, workspace: Path) -> str:
    free = shutil.disk_usage(workspace).free // (1024 * 1024)
    return admission.refusal(sweep.limits, disk_free_mb=free)
