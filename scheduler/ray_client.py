"""The only door to Ray: start or reach it, list its nodes, make actors and speak with them.

Ray's blocking calls are made in one thread of its own, since Ray's processes live as long as the
thread that started them. What Ray raises becomes an error of ours here.

*Why Ray retries nothing:* it places and transports; what is tried again is the queue's to say.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TypeVar

from scheduler.errors import ClusterError, NodeLostError, NodeSilentError
from scheduler.local_ray import DRIVER_ENVIRONMENT, LOG_FILE_BYTES, LOG_FILES_KEPT
from scheduler.own_thread import OwnThread
from scheduler.ray_watch import knock

T = TypeVar("T")

NAMESPACE = "apiary"
NODE_RESOURCE = "apiary_node"
"""A Ray resource: nodes that declare it are used, and no others; a local Ray declares it."""

START_S = 120.0
STOP_S = 30.0
KNOCK_S = 10.0
ASK_S = 20.0

SHARE = 0.6
"""Of the resource, for a place that is asked for: no two of them are on one node, which still has
some of it for the node actor."""

MAX_CONCURRENCY = 1000
LOGGERS = ("ray", "ray._private", "ray._common")
"""The first loses its handlers whenever Ray is started; the others speak while it starts."""

OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Nothing of ours is in it; Ray wants at least 75 MiB."""


@dataclass(frozen=True)
class RayHost:
    """A Ray node that lives."""

    node_id: str
    name: str
    """Its machine's."""
    declares: bool
    """Whether it declares our resource."""


class RayActor:
    """A node actor; every call is bounded."""

    def __init__(self, handle: Any, node: str) -> None:
        self._handle = handle
        self._node = node

    async def ask(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Calls a method.

        Raises:
            ClusterError: it failed, the actor is dead, or there was no answer in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await getattr(self._handle, method).remote(*arguments)
        except TimeoutError as error:
            raise ClusterError(f"node {self._node}: no answer in {timeout_s:g} s") from error
        except Exception as error:
            raise ClusterError(f"node {self._node}: {last_line(error)}") from error

    async def exchange(self, orders: str) -> str:
        """Gives orders and waits for the answer; the caller bounds it.

        Raises:
            NodeLostError: the actor is dead for certain.
            NodeSilentError: it cannot be reached.
        """
        from ray import exceptions, kill

        try:
            answer: str = await self._handle.exchange.remote(orders)
        except exceptions.RayTaskError as error:
            # A bug in the node. It is ended, so that it cannot commit what is leased again.
            kill(self._handle, no_restart=True)
            raise NodeLostError(self._node, last_line(error)) from error
        except exceptions.ActorUnavailableError as error:
            raise NodeSilentError(self._node, "its actor cannot be reached") from error
        except exceptions.RayActorError as error:
            raise NodeLostError(self._node, why_dead(str(error))) from error
        except exceptions.RayError as error:
            raise NodeSilentError(self._node, last_line(error)) from error
        return answer

    def kill(self) -> None:
        """Ends its process at once; blocks."""
        import ray

        ray.kill(self._handle, no_restart=True)


class RayClient:
    """This process's connection to Ray; ``leave`` must follow, whatever ``start`` raised."""

    def __init__(self, *, declared: bool = False) -> None:
        """``declared``: nodes that do not declare our resource are not used, whatever comes."""
        self._declared = declared
        """Whether nodes that declare our resource are the only ones that may be used."""
        self._thread = OwnThread("ray")
        self._log: logging.Handler = logging.NullHandler()
        self._environment: Mapping[str, str] = {}
        self._places: list[Any] = []
        """Asked for: each a placement group on a node, or waiting for one."""
        self.head = ""
        """``host:port`` of the cluster's control service, once it is reached."""

    async def start(self, environment: Mapping[str, str], folder: Path, log: Path) -> None:
        """Starts a Ray of one node on this machine; its session is kept in the folder."""
        self._environment = environment

        def start() -> None:
            self._init(
                log,
                environment,
                address="local",
                num_cpus=1,
                resources={NODE_RESOURCE: 1},
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                _temp_dir=str(folder),
            )

        await self._thread.call(start, START_S)

    async def connect(self, address: str, log: Path) -> None:
        """Joins a running cluster.

        Raises:
            OSError: nothing listens at the address.
            ValueError: the address is not one that a driver can join.
        """

        def connect() -> None:
            if "://" in address:
                raise ValueError("expected host:port of the cluster's head, or auto")
            host, _, port = address.rpartition(":")
            if host and port.isdecimal():
                # Fails at once where nothing listens: Ray would try for a minute or two.
                knock(address, KNOCK_S)
            environment = {"RAY_USAGE_STATS_ENABLED": "0", **DRIVER_ENVIRONMENT}
            self._init(log, environment, address=address)

        await self._thread.call(connect, START_S)

    async def hosts(self) -> list[RayHost]:
        """The Ray nodes that live: those that declare our resource, or all if none ever did.

        One that was started without processors is none of all: Ray's own way to say so of a head.

        Raises:
            ClusterError: Ray does not answer.
        """

        def ask() -> list[RayHost]:
            import ray

            alive = [node for node in ray.nodes() if node["Alive"]]
            found = [node for node in alive if NODE_RESOURCE in node["Resources"]]
            self._declared = self._declared or bool(found)
            if not self._declared:
                found = [node for node in alive if node["Resources"].get("CPU")]
            return [
                RayHost(node["NodeID"], node["NodeManagerHostname"], declares=self._declared)
                for node in found
            ]

        return await self.call(ask, "ask for the nodes of the cluster")

    async def ask_for(self, nodes: int, spare: Collection[str] = ()) -> None:
        """Asks the cluster for so many nodes that declare our resource, those that it has included.

        What it lacks is pending demand, which its autoscaler sees; there is none any more once this
        driver is gone, however it ended.

        Args:
            nodes: in all.
            spare: ids of Ray nodes that are not needed: nothing is to hold them.

        Raises:
            ClusterError: Ray does not answer.
        """

        def ask() -> None:
            from ray.util import placement_group, placement_group_table, remove_placement_group

            told = placement_group_table() if self._places else {}

            def host(place: Any) -> str:
                """Where it is; empty while it waits for a node."""
                at: dict[int, str] = told.get(place.id.hex(), {}).get("bundles_to_node_id", {})
                return next(iter(at.values()), "")

            kept = [place for place in self._places if host(place) not in spare]
            # Of too many those go that wait for a node.
            kept = sorted(kept, key=host, reverse=True)[:nodes]
            for place in self._places:
                if place not in kept:
                    remove_placement_group(place)
            missing = range(nodes - len(kept))
            self._places = kept + [placement_group([{NODE_RESOURCE: SHARE}]) for _ in missing]

        await self.call(ask, "ask the cluster for nodes")

    async def is_alive(self, host: RayHost) -> bool:
        """Whether Ray still has the node; false where it does not answer."""

        def ask() -> bool:
            import ray

            return any(node["NodeID"] == host.node_id for node in ray.nodes() if node["Alive"])

        with suppress(ClusterError):
            return await self.call(ask, f"ask for {host.name}")
        return False

    async def names(self) -> Sequence[str]:
        """The names of the actors that live in our namespace.

        Raises:
            ClusterError: Ray does not answer.
        """

        def ask() -> Sequence[str]:
            from ray.util import list_named_actors

            found: Sequence[str] = list_named_actors()
            return found

        return await self.call(ask, "ask for the actors of the cluster")

    async def named(self, name: str, host: RayHost) -> RayActor:
        """The actor of that name.

        Raises:
            ClusterError: there is none, or Ray does not answer.
        """

        def ask() -> RayActor:
            import ray

            return RayActor(ray.get_actor(name, namespace=NAMESPACE), host.name)

        return await self.call(ask, f"find the node actor on {host.name}")

    async def make(
        self, actor_class: type, host: RayHost, name: str | None, *arguments: Any
    ) -> RayActor:
        """Makes an actor on a node; one with a name outlives this driver.

        Raises:
            ClusterError: the name is taken, or Ray does not answer.
        """

        def make() -> RayActor:
            import ray
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            lasting = {"name": name, "namespace": NAMESPACE, "lifetime": "detached"}
            made = ray.remote(actor_class).options(
                num_cpus=0,
                # Not zero, so that an autoscaler does not take an idle-looking node away.
                resources={NODE_RESOURCE: 0.001} if host.declares else None,
                scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False),
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=MAX_CONCURRENCY,
                **(lasting if name is not None else {}),
            )
            return RayActor(made.remote(*arguments), host.name)

        return await self.call(make, f"start a node actor on {host.name}")

    async def kill(self, actor: RayActor) -> None:
        """Ends an actor, if Ray can still be told to."""
        with suppress(ClusterError):
            await self.call(actor.kill, "end a node actor")

    async def leave(self) -> None:
        """Leaves Ray; what a local one leaves running is its folder's to end."""

        def shutdown() -> None:
            import ray

            ray.shutdown()

        with suppress(ClusterError):
            await self.call(shutdown, "leave Ray", STOP_S)
        for name in self._environment:
            os.environ.pop(name, None)
        self._thread.end()
        for name in LOGGERS:
            logging.getLogger(name).handlers[:] = [logging.NullHandler()]
        self._log.close()

    async def call(self, function: Callable[[], T], what: str, timeout_s: float = ASK_S) -> T:
        """Makes a blocking call of Ray's in its thread.

        Raises:
            ClusterError: it failed or took too long; ``what`` begins its message.
        """
        try:
            return await self._thread.call(function, timeout_s)
        except TimeoutError as error:
            raise ClusterError(f"{what}: Ray did not answer in {timeout_s:g} s") from error
        except Exception as error:
            raise ClusterError(f"{what}: {last_line(error)}") from error

    # In the thread that knows Ray

    def _init(self, log: Path, environment: Mapping[str, str], **options: Any) -> None:
        os.environ.update(environment)
        import ray

        self._silence(log)
        context = ray.init(
            namespace=NAMESPACE, log_to_driver=False, configure_logging=False, **options
        )
        self._silence(log)
        self.head = str(context.address_info.get("gcs_address") or "")

    def _silence(self, log: Path) -> None:
        """Sends to a file what Ray would write to the user's terminal.

        Called before and after ``ray.init``, which takes away the handlers of its root logger.
        """
        import ray

        self._log.close()
        self._log = RotatingFileHandler(
            log, maxBytes=LOG_FILE_BYTES, backupCount=LOG_FILES_KEPT, delay=True
        )
        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.propagate = False
            logger.handlers[:] = [self._log]
        # Ray prints its error messages (a worker died, a node was lost) on standard output, where
        # our data goes, and has no public switch for it; it turns them off so while it debugs.
        ray._private.worker._worker_logs_enabled = False


def last_line(error: BaseException) -> str:
    """What an exception says at its end: where Ray repeats a remote traceback, its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def why_dead(text: str) -> str:
    """Ray's reason for an actor's death, without its identifiers and advice."""
    for line in text.splitlines():
        _, because, reason = line.partition("The actor is dead because ")
        if because:
            return reason.split(" Worker exit")[0].split(" Owner Id")[0].rstrip(".")[:200]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "it died")[:200]
