"""Ray on the driver's side: start or reach it, and one node actor on each of its nodes.

The only module of the driver that imports Ray, and it does so in one thread of its own: Ray's
calls block, and its processes live as long as the thread that started them.

*Why Ray retries nothing:* it places and transports; what is tried again is the queue's to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scheduler.errors import ClusterError, NodeLostError, NodeSilentError, NoNodeError
from scheduler.local_ray import UNHANDLED_VARIABLE, WORKSPACE, RayFolder
from scheduler.own_thread import OwnThread
from workers.actor import NodeActor, Opened, OpenOptions
from workers.contract.report import Orders, Progress
from workers.contract.spec import SweepSpec

NAMESPACE = "apiary"
NODE_RESOURCE = "apiary_node"
"""A Ray resource: nodes that declare it are used, and no others; a local Ray declares it."""

START_S = 120.0
STARTS = 3
"""Ray gives itself 30 s for its first steps, which a machine under load may exceed."""
STOP_S = 30.0
KNOCK_S = 10.0
ASK_S = 20.0
OPEN_S = 120.0
CLOSE_S = 15.0
"""For letting go of what trials share, beyond the time for the trials themselves."""
ACTORS_PER_NODE = 3
"""Node actors started on one Ray node, the first included, before it is given up."""

MAX_CONCURRENCY = 1000
LOGGERS = ("ray", "ray._private", "ray._common")
"""The first loses its handlers whenever Ray is started; the others speak while it starts."""

OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Nothing of ours is in it; Ray wants at least 75 MiB."""


@dataclass(frozen=True)
class ClusterOptions:
    """How nodes are had and what they are told."""

    address: str | None
    """Of a running cluster; null: a local Ray is started, and ended."""
    home: Path
    """The ``.apiary`` folder: logs, and the workspace of a local node."""
    n_concurrent: int | None
    task_memory_mb: int
    close_s: float
    """How long a node may take to end its trials when the cluster is left."""


class RayNode:
    """A node actor as dispatch sees it."""

    def __init__(self, opened: Opened, actor: Any) -> None:
        self.opened = opened
        self.actor = actor
        self.is_dead = False
        self.is_closed = False
        """Whether it has ended its trials and let go of what they shared."""

    @property
    def name(self) -> str:
        """As records carry it."""
        return self.opened.node

    async def exchange(self, orders: Orders) -> Progress:
        """Gives orders and waits for the answer.

        Raises:
            NodeLostError: the actor is dead for certain.
            NodeSilentError: it cannot be reached.
        """
        from ray import exceptions, kill

        try:
            answer = await self.actor.exchange.remote(orders.to_json())
        except exceptions.RayTaskError as error:
            # A bug in the node. It is ended, so that it cannot commit what is leased again.
            kill(self.actor, no_restart=True)
            raise self._lost(_last_line(error)) from error
        except exceptions.ActorUnavailableError as error:
            raise NodeSilentError(self.name, "its actor cannot be reached") from error
        except exceptions.RayActorError as error:
            raise self._lost(_why_dead(error)) from error
        except exceptions.RayError as error:
            raise NodeSilentError(self.name, _last_line(error)) from error
        return Progress.from_json(answer, f"progress of node {self.name}")

    def _lost(self, reason: str) -> NodeLostError:
        self.is_dead = True
        return NodeLostError(self.name, reason)


class Cluster:
    """A Ray cluster and the sweep's nodes on it; an async context manager and a node source."""

    def __init__(
        self,
        sweep: SweepSpec,
        options: ClusterOptions,
        actor_class: type[NodeActor] = NodeActor,
    ) -> None:
        """Starts nothing yet; ``actor_class`` is replaced where trials are simulated."""
        self._sweep = sweep
        self._options = options
        self._actor_class = actor_class
        self._thread: OwnThread | None = None
        self._folder: RayFolder | None = None
        self._nodes: list[RayNode] = []
        self._on: dict[str, RayNode] = {}
        """The last node actor on each Ray node."""
        self._started: Counter[str] = Counter()
        self._fault = "it died each time"
        """Why the last actor could not be opened."""
        self._log: logging.Handler = logging.NullHandler()
        self.killed: list[int] = []
        """Processes of a local Ray that did not end by themselves."""

    async def __aenter__(self) -> Self:
        """Starts or reaches Ray.

        Raises:
            ClusterError: it did not work; the message says where to look.
        """
        for left in reversed(range(STARTS if self._options.address is None else 1)):
            try:
                await self._enter()
                break
            except BaseException as error:
                await self._leave()
                if not isinstance(error, Exception):
                    raise
                if not left:
                    raise ClusterError(self._what_failed(error)) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.gather(*(self._close(node) for node in self._nodes if not node.is_dead))
        await self._leave()

    @property
    def untidy_nodes(self) -> tuple[str, ...]:
        """Nodes that ended without having ended their trials: containers may be left there."""
        return tuple(sorted({node.name for node in self._nodes if not node.is_closed}))

    async def find(self) -> Sequence[RayNode]:
        """The nodes that have joined since the last call, their actors opened.

        Raises:
            NoNodeError: this machine's only node was given up.
            ClusterError: Ray does not answer, or no actor could be opened on a new node.
        """
        hosts = await self._call(self._new_hosts, ASK_S, "ask for the nodes of the cluster")
        if not hosts and self._folder is not None and all(node.is_dead for node in self._nodes):
            raise NoNodeError(f"a node was started {ACTORS_PER_NODE} times: {self._fault}")
        results = await asyncio.gather(
            *(self._open(host) for host in hosts), return_exceptions=True
        )
        found = [each for each in results if isinstance(each, RayNode)]
        self._nodes += found
        faults = [each for each in results if isinstance(each, BaseException)]
        for fault in faults:
            if not isinstance(fault, ClusterError):
                raise fault
            self._fault = str(fault)
        if faults and not found:
            raise faults[0]
        return found

    async def _enter(self) -> None:
        self._thread = OwnThread("ray")
        if self._options.address is None:
            self._folder = RayFolder(self._options.home / "ray")
            await self._thread.call(self._start, START_S)
        else:
            await self._thread.call(self._connect, START_S)

    # In the thread that knows Ray

    def _start(self) -> None:
        assert self._folder is not None  # made just before
        os.environ.update(self._folder.environment)
        import ray

        self._silence(self._folder.log)
        ray.init(
            address="local",
            namespace=NAMESPACE,
            num_cpus=1,
            resources={NODE_RESOURCE: 1},
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            _temp_dir=str(self._folder.path),
        )
        self._silence(self._folder.log)

    def _connect(self) -> None:
        _knock(self._options.address or "")
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ[UNHANDLED_VARIABLE] = "1"
        import ray

        logs = self._options.home / "ray"
        logs.mkdir(parents=True, exist_ok=True)
        self._silence(logs / "client.log")
        ray.init(
            address=self._options.address,
            namespace=NAMESPACE,
            log_to_driver=False,
            configure_logging=False,
        )
        self._silence(logs / "client.log")

    def _silence(self, log: Path) -> None:
        """Sends to a file what Ray would write to the user's terminal.

        Called before and after ``ray.init``, which takes away the handlers of its root logger.
        """
        import ray

        self._log.close()
        self._log = logging.FileHandler(log, delay=True)
        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.propagate = False
            logger.handlers[:] = [self._log]
        # Ray prints its error messages (a worker died, a node was lost) on standard output, where
        # our data goes, and has no public switch for it; it turns them off so while it debugs.
        ray._private.worker._worker_logs_enabled = False

    def _new_hosts(self) -> list[_Host]:
        """Ray nodes that live and have no living node actor of ours."""
        import ray

        alive = [node for node in ray.nodes() if node["Alive"]]
        declared = [node for node in alive if NODE_RESOURCE in node["Resources"]]
        names = Counter(node["NodeManagerHostname"] for node in declared or alive)
        hosts = []
        for node in declared or alive:
            node_id, name = node["NodeID"], node["NodeManagerHostname"]
            known = self._on.get(node_id)
            if known is not None and not known.is_dead:
                continue
            if self._started[node_id] >= ACTORS_PER_NODE:
                continue
            if self._folder is not None:
                name = platform.node()
            elif names[name] > 1:
                name = f"{name}-{node_id[:6]}"
            hosts.append(_Host(node_id, name, declares=bool(declared)))
        return hosts

    def _new_actor(self, host: _Host) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        made = ray.remote(self._actor_class).options(
            num_cpus=0,
            # Not zero, so that an autoscaler does not take an idle-looking node away.
            resources={NODE_RESOURCE: 0.001} if host.declares else None,
            scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=MAX_CONCURRENCY,
        )
        return made.remote()

    # Actors

    async def _open(self, host: _Host) -> RayNode:
        self._started[host.node_id] += 1
        what = f"start a node actor on {host.name}"
        actor = await self._call(lambda: self._new_actor(host), ASK_S, what)
        options = OpenOptions(
            node=host.name,
            workspace=str(self._options.home / WORKSPACE) if self._folder is not None else None,
            n_concurrent=self._options.n_concurrent,
            task_memory_mb=self._options.task_memory_mb,
        )
        try:
            async with asyncio.timeout(OPEN_S):
                answer = await actor.open.remote(self._sweep.to_json(), options.to_json())
        except TimeoutError as error:
            await self._kill(actor)
            raise ClusterError(f"{what}: it was not open after {OPEN_S:g} s") from error
        except Exception as error:
            await self._kill(actor)
            raise ClusterError(f"{what}: {_last_line(error)}") from error
        opened = Opened.from_json(answer, f"answer of node {host.name}")
        if opened.error:
            await self._kill(actor)
            raise ClusterError(f"node {host.name} cannot work: {opened.error}")
        node = RayNode(opened, actor)
        self._on[host.node_id] = node
        return node

    async def _close(self, node: RayNode) -> None:
        """Ends a node's trials, then the actor; both bounded, whatever state it is in."""
        with contextlib.suppress(Exception):
            # Whatever goes wrong here: it is ended below, and what it leaves is the reaper's.
            async with asyncio.timeout(self._options.close_s + CLOSE_S):
                await node.actor.close.remote(self._options.close_s)
                node.is_closed = True
        await self._kill(node.actor)

    async def _kill(self, actor: Any) -> None:
        def kill() -> None:
            import ray

            ray.kill(actor, no_restart=True)

        with contextlib.suppress(ClusterError):
            await self._call(kill, ASK_S, "end a node actor")

    async def _call(self, function: Any, timeout_s: float, what: str) -> Any:
        assert self._thread is not None  # made on entering
        try:
            return await self._thread.call(function, timeout_s)
        except TimeoutError as error:
            raise ClusterError(f"{what}: Ray did not answer in {timeout_s:g} s") from error
        except Exception as error:
            raise ClusterError(f"{what}: {_last_line(error)}") from error

    async def _leave(self) -> None:
        """Leaves Ray, and ends a local one with every process that it started."""

        def shutdown() -> None:
            import ray

            ray.shutdown()

        with contextlib.suppress(ClusterError):
            await self._call(shutdown, STOP_S, "leave Ray")
        if self._folder is not None:
            for name in self._folder.environment:
                os.environ.pop(name, None)
            self.killed = await asyncio.to_thread(self._folder.remove)
        assert self._thread is not None  # made on entering
        self._thread.end()
        for name in LOGGERS:
            logging.getLogger(name).handlers[:] = [logging.NullHandler()]
        self._log.close()

    def _what_failed(self, error: Exception) -> str:
        if self._options.address is not None:
            return (
                f"no Ray cluster could be reached at {self._options.address}: "
                f"{_last_line(error)}; a cluster with token authentication needs RAY_AUTH_MODE "
                "and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH in this environment"
            )
        return (
            f"Ray could not be started on this machine: {_last_line(error)}; "
            f"look at {self._options.home / 'ray'}"
        )


@dataclass(frozen=True)
class _Host:
    """A Ray node that is to get an actor."""

    node_id: str
    name: str
    declares: bool
    """Whether it declares our resource."""


def _knock(address: str) -> None:
    """Fails at once where nothing listens: Ray would try for a minute or two.

    Raises:
        OSError: nothing listens there.
        ValueError: the address is not one that a driver can join.
    """
    if "://" in address:
        raise ValueError("expected host:port of the cluster's head, or auto")
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_S).close()


def _last_line(error: BaseException) -> str:
    """What an exception says at its end: where Ray repeats a remote traceback, its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _why_dead(error: BaseException) -> str:
    """Ray's reason for an actor's death, without its identifiers and advice."""
    for line in str(error).splitlines():
        _, because, reason = line.partition("The actor is dead because ")
        if because:
            return reason.split(" Worker exit")[0].rstrip(".")[:200]
    return _last_line(error)[:200]
