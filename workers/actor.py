"""The composition root of a node: joins ``node`` and ``trial`` with the tools of a trial.

``scheduler.cluster`` makes a Ray actor of this class. Only JSON text goes in and out, so that
driver and node share formats and not Python objects; Ray itself is not imported here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from workers import admission
from workers.config import NodeConfig, read_config
from workers.contract.base import Strict
from workers.contract.endpoint import Endpoint
from workers.contract.report import Orders
from workers.contract.spec import SweepSpec
from workers.contract.trial import TrialFunction
from workers.node import Node
from workers.storage import StoreError, open_store

THREADS = 32
"""Of the loop's default pool: asyncio's own has a few more than cores, and starves."""

REAP_S = 60.0
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


class Opened(Strict):
    """What a node answers when it has been opened."""

    node: str
    pid: int
    slots: int
    error: str = ""
    """Why it cannot work; empty: it can."""


class NodeActor:
    """One node of one sweep; every method is a coroutine of one event loop."""

    def __init__(self) -> None:
        self._owned = AsyncExitStack()
        self._node: Node | None = None

    async def open(self, sweep_json: str, options_json: str) -> str:
        """Acquires everything that trials share.

        Returns:
            ``Opened`` as JSON; a node that cannot work holds nothing.
        """
        sweep = SweepSpec.from_json(sweep_json, "sweep")
        options = OpenOptions.from_json(options_json, "options")
        config = read_config(options.workspace)
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(THREADS, thread_name_prefix="node")
        )
        error = ""
        slots = admission.slots(
            sweep.limits,
            n_concurrent=options.n_concurrent,
            cores=config.cores,
            memory_mb=config.memory_mb,
            task_memory_mb=options.task_memory_mb,
        )
        try:
            config.workspace.mkdir(parents=True, exist_ok=True)
            run_trial = await self.assemble(sweep, options, config, self._owned)
        except (NodeSetupError, OSError, StoreError) as refused:
            await self._owned.aclose()
            error = str(refused)
        else:
            self._node = Node(
                options.node,
                sweep.sweep,
                slots,
                run_trial,
                refusal=lambda: _refusal(sweep, config.workspace),
            )
        return Opened(node=options.node, pid=os.getpid(), slots=slots, error=error).to_json()

    async def exchange(self, orders_json: str) -> str:
        """``Orders`` in, ``Progress`` out, both as JSON."""
        if self._node is None:
            raise RuntimeError("the node is not open")
        progress = await self._node.exchange(Orders.from_json(orders_json, "orders"))
        return progress.to_json()

    async def close(self, timeout_s: float) -> None:
        """Ends all trials with their teardown, bounded, then releases what they shared."""
        if self._node is not None:
            await self._node.close(timeout_s)
        await self._owned.aclose()

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
        from workers.container.reap import reap
        from workers.container.scratch import (
            folders_with_owners,
            remove_abandoned,
            scratch_folder,
        )
        from workers.gateway.errors import GatewayError
        from workers.gateway.server import Gateway
        from workers.trial.handoff import Tools
        from workers.trial.run import make_trial_function

        try:
            engine = await DockerEngine.open(options.node, DOCKER_CALLS)
            owned.push_async_callback(engine.close)
            await asyncio.wait_for(reap(engine), REAP_S)
            stale = folders_with_owners(config.workspace)
            await asyncio.wait_for(asyncio.to_thread(remove_abandoned, stale), REAP_S)
            endpoints = await self._endpoints(sweep, owned)
            gateway = await owned.enter_async_context(Gateway(endpoints, config.environment))
        except (ContainerError, GatewayError, TimeoutError) as error:
            raise NodeSetupError(str(error) or f"reaping took over {REAP_S:g} s") from error
        tools = Tools(
            engine=engine,
            gateway=gateway,
            store=open_store(sweep.store),
            node=options.node,
            workspace=config.workspace,
            sockets=owned.enter_context(scratch_folder("node")),
        )
        bundle = AgentBundle(engine, config.workspace, {"apiary.sweep": sweep.sweep})
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
