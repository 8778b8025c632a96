"""The sweep's nodes on a Ray cluster: one actor on each of its nodes, opened or adopted.

On a cluster that outlives its drivers an actor has a name, one for each sweep and Ray node. A
driver that is killed leaves its actors with what they run; the next one finds them by name,
adopts those that speak its protocol and were opened for the same sweep, and ends the others. A
driver that ends well takes its actors with it, unless a newer one has taken them over. On a Ray
of its own, the actors end with the driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from scheduler.errors import (
    ClusterError,
    ClusterLostError,
    NoNodeError,
)
from scheduler.local_ray import WORKSPACE, RayFolder
from scheduler.openings import Openings
from scheduler.ray_client import RayActor, RayClient, RayHost, last_line
from scheduler.ray_node import RayNode
from scheduler.ray_watch import RayWatch
from scheduler.scaling import may_go, nodes_wanted
from workers.actor import NodeActor, Opened, OpenOptions
from workers.contract.report import protocol_version
from workers.contract.spec import SweepSpec
from workers.journal import LogFormat

STARTS = 3
"""Ray gives itself 30 s for its first steps, which a machine under load may exceed."""
ASK_S = 20.0
OPEN_S = 120.0
UNOPENED_S = 600.0
"""After which an actor whose driver died before it opened it ends itself."""
CLOSE_S = 15.0
"""For letting go of what trials share, beyond the time for the trials themselves."""
NAME_S = 20.0
"""For Ray to give an ended actor's name free."""
ACTORS_PER_NODE = 3
"""Node actors started on one Ray node, the first included, before it is given up."""


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
    task_cpus: int = 1
    node_metrics: str = ""
    """``address:port`` where a local node serves its metrics; empty: nowhere. Those of a cluster
    have their own configuration."""
    log_format: LogFormat = "json"
    """Of the nodes' logs."""
    generation: int = 0
    """Of the driver: a node that a newer one has taken over is let be."""
    max_nodes: int | None = None
    """Nodes that the cluster is asked for, at most; null: those that are there are used."""
    open_attempts: Callable[[], int] = lambda: 0
    """How many there are to run; asked where the cluster is asked for nodes."""


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
        self._ray: RayClient
        self._folder: RayFolder | None = None
        self._watch: RayWatch
        self._lost = ""
        """Why Ray itself is lost."""
        self._looked = False
        """Whether actors of earlier drivers have been looked for."""
        self._nodes: list[RayNode] = []
        self._on: dict[str, RayNode] = {}
        """The last node actor on each Ray node."""
        self._openings = Openings()
        self._useless = 0
        """Ray nodes that live and were given up."""
        self._started: Counter[str] = Counter()
        self._fault = "it died each time"
        """Why the last actor could not be opened."""
        self._let_be = False
        self.killed: list[int] = []
        """Processes of a local Ray that did not end by themselves."""

    async def __aenter__(self) -> Self:
        """Starts or reaches Ray.

        Raises:
            ClusterError: it did not work; the message says where to look.
        """
        for left in reversed(range(STARTS if self._options.address is None else 1)):
            self._ray = RayClient(declared=self._options.max_nodes is not None)
            try:
                await self._enter(self._options.address)
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
        self._known(await self._openings.abandon())
        if not self._let_be:
            await asyncio.gather(*(self._close(node) for node in self._nodes if not node.is_dead))
        await self._leave()

    @property
    def untidy_nodes(self) -> tuple[str, ...]:
        """Nodes that ended without having ended their trials: containers may be left there."""
        return tuple(sorted({node.name for node in self._nodes if not node.is_closed}))

    def let_be(self) -> None:
        """A newer driver adopts the nodes: they are not ended when the cluster is left."""
        self._let_be = self._folder is None

    async def find(self) -> Sequence[RayNode]:
        """The nodes that have joined since the last call, their actors opened.

        Where the cluster is asked for nodes, those that are spare are ended, the cluster is told
        how many are needed, and no more than these are opened.

        The first call adopts what an earlier driver left, if it did, and leaves new actors to
        the next call: what runs already is to be heard of before anything is leased.

        Raises:
            NoNodeError: this machine's only node was given up.
            ClusterLostError: Ray itself died.
            ClusterError: Ray does not answer, or no actor could be opened on a new node.
        """
        self._lost = await asyncio.to_thread(self._watch.why_lost, time.monotonic())
        if self._lost:
            raise ClusterLostError(self._lost)
        hosts = await self._new_hosts()
        if self._folder is None and not self._looked:
            adopted = await self._adopt_all(hosts)
            self._looked = True
            if adopted:
                return adopted
        for host in await self._needed(hosts):
            self._openings.begin(host.node_id, self._open(host))
        if not self._openings and self._folder is not None and all(n.is_dead for n in self._nodes):
            raise NoNodeError(self._why_no_node())
        # One that is slow to open keeps none from work, and no newcomer from being seen.
        found, faults = await self._openings.ended(at_least_one=not self._rooms())
        for fault in faults:
            self._fault = str(fault)
        if faults and not found:
            raise faults[0]
        return self._known(found)

    async def _enter(self, address: str | None) -> None:
        home = self._options.home / "ray"
        if address is None:
            folder = self._folder = RayFolder(home)
            await self._ray.start(folder.environment, folder.path, folder.log)
            self._watch = RayWatch(folder.servers(), "")
        else:
            home.mkdir(parents=True, exist_ok=True)
            await self._ray.connect(address, home / "client.log")
            self._watch = RayWatch({}, self._ray.head)

    async def _leave(self) -> None:
        """Leaves Ray, and ends a local one with every process that it started."""
        if self._folder is not None and self._lost:
            # Without its servers Ray cannot be left in an orderly way; nothing of it is kept.
            self.killed = await asyncio.to_thread(self._folder.end_now)
        await self._ray.leave()
        if self._folder is not None:
            self.killed += await asyncio.to_thread(self._folder.remove)

    # Hosts

    async def _needed(self, hosts: list[RayHost]) -> list[RayHost]:
        """Of the hosts without a node actor, those on which one is needed."""
        most = self._options.max_nodes
        if most is None:
            return hosts
        spare = [node for node in self._nodes if node.is_spare and not node.is_dead]
        await asyncio.gather(*(self._let_go(node) for node in spare))
        hosts += [node.host for node in spare]
        rooms = self._rooms()
        wanted = nodes_wanted(
            self._options.open_attempts(),
            rooms,
            most=max(0, most - self._useless),
            n_concurrent=self._options.n_concurrent,
        )
        more = max(0, wanted - len(rooms) - len(self._openings))
        # One that was given up keeps its place: another would be put there again.
        places = wanted and wanted + self._useless
        await self._ray.ask_for(places, {host.node_id for host in hosts[more:]})
        return hosts[:more]

    def _rooms(self) -> dict[str, int]:
        """Of each node that is used, how many trials it runs at once."""
        used = {node.host.node_id: node for node in self._nodes if not node.is_dead}
        return {name: node.slots for name, node in used.items() if self._on[name] is node}

    def _may_go(self, node: RayNode) -> bool:
        """Whether the node is not needed any more."""
        if self._options.max_nodes is None:
            return False
        rooms = {name: room for name, room in self._rooms().items() if not self._on[name].is_spare}
        return may_go(node.host.node_id, self._options.open_attempts(), rooms)

    async def _let_go(self, node: RayNode) -> None:
        """Ends a node that is spare, so that its machine is idle; it may be used again."""
        await self._close(node)
        node.is_dead = True
        self._started[node.host.node_id] -= 1

    async def _new_hosts(self) -> list[RayHost]:
        """Ray nodes that live and have no living node actor of ours, under the nodes' names."""
        alive = await self._ray.hosts()
        names = Counter(host.name for host in alive)
        hosts, self._useless = [], 0
        for host in alive:
            known = self._on.get(host.node_id)
            if host.node_id in self._openings or (known is not None and not known.is_dead):
                continue
            if self._started[host.node_id] >= ACTORS_PER_NODE:
                self._useless += 1
                continue
            name = host.name
            if self._folder is not None:
                name = platform.node()
            elif names[name] > 1:
                name = f"{name}-{host.node_id[-6:]}"
            hosts.append(RayHost(host.node_id, name, host.declares))
        return hosts

    def _why_no_node(self) -> str:
        started = sum(self._started.values())
        if started >= ACTORS_PER_NODE:
            return f"a node was started {started} times: {self._fault}"
        return f"Ray has lost its node on this machine: {self._fault}"

    # Actors

    def _actor_name(self, host: RayHost) -> str | None:
        """One for each sweep and Ray node; null: the actor ends with the driver."""
        return None if self._folder is not None else f"{self._sweep.sweep}/{host.node_id}"

    async def _adopt_all(self, hosts: Sequence[RayHost]) -> list[RayNode]:
        there = set(await self._ray.names())
        found = [host for host in hosts if self._actor_name(host) in there]
        nodes = await asyncio.gather(*(self._adopt(host) for host in found))
        return self._known([node for node in nodes if node is not None])

    async def _adopt(self, host: RayHost) -> RayNode | None:
        """The node of an earlier driver; None, and it is ended, if it cannot be adopted."""
        try:
            actor = await self._ray.named(self._actor_name(host) or "", host)
        except ClusterError:
            return None  # It ended in the meantime.
        with contextlib.suppress(ClusterError):
            # One that does not answer, since it is frozen or of an older version, is ended at once:
            # the leases of all others run out while it is waited for.
            version = await actor.ask("protocol", timeout_s=ASK_S)
            opened = None
            if version == protocol_version():
                opened = await self._ask_to_open(actor, host, ASK_S)
            if opened is not None and not opened.error:
                node = self._node(opened, actor, host, adopted=True)
                self._on[host.node_id] = node
                return node
            bound = self._options.close_s
            await actor.ask("close", bound, timeout_s=bound + CLOSE_S)
        await self._ray.kill(actor)
        return None

    async def _open(self, host: RayHost) -> RayNode:
        self._started[host.node_id] += 1
        actor = await self._make(host)
        try:
            opened = await self._ask_to_open(actor, host)
            if opened.error:
                raise ClusterError(f"node {host.name} cannot work: {opened.error}")
        except (ClusterError, asyncio.CancelledError):
            if not self._let_be and not self._lost:  # else a newer driver may have adopted it
                await self._ray.kill(actor)
            raise
        node = self._on[host.node_id] = self._node(opened, actor, host, adopted=False)
        return node

    def _node(self, opened: Opened, actor: RayActor, host: RayHost, *, adopted: bool) -> RayNode:
        return RayNode(
            opened.node,
            actor,
            self._ray,
            host,
            slots=opened.slots,
            metrics=opened.metrics,
            adopted=adopted,
            may_go=self._may_go,
        )

    async def _make(self, host: RayHost) -> RayActor:
        """A new actor; where one was ended just now, its name is taken a moment longer."""
        name = self._actor_name(host)
        give_up = time.monotonic() + NAME_S
        while name is not None and name in await self._ray.names():
            if time.monotonic() > give_up:
                raise ClusterError(f"node {host.name}: its actor of before does not end")
            await asyncio.sleep(0.5)
        unopened_s = None if name is None else UNOPENED_S
        return await self._ray.make(self._actor_class, host, name, unopened_s)

    async def _ask_to_open(
        self, actor: RayActor, host: RayHost, timeout_s: float = OPEN_S
    ) -> Opened:
        options = OpenOptions(
            node=host.name,
            workspace=str(self._options.home / WORKSPACE) if self._folder is not None else None,
            n_concurrent=self._options.n_concurrent,
            task_memory_mb=self._options.task_memory_mb,
            task_cpus=self._options.task_cpus,
            log_format=self._options.log_format,
            metrics=self._options.node_metrics if self._folder is not None else "",
        )
        answer = await actor.ask(
            "open", self._sweep.to_json(), options.to_json(), timeout_s=timeout_s
        )
        return Opened.from_json(answer, f"answer of node {host.name}")

    def _known(self, nodes: list[RayNode]) -> list[RayNode]:
        self._nodes += nodes
        return nodes

    async def _close(self, node: RayNode) -> None:
        """Ends a node's trials, then the actor; both bounded, whatever state it is in."""
        bound = self._options.close_s
        with contextlib.suppress(ClusterError):
            # Whatever goes wrong here: it is ended below, and what it leaves is the reaper's.
            closing = node.actor.ask(
                "close", bound, self._options.generation, timeout_s=bound + CLOSE_S
            )
            node.is_closed = await closing
            if not node.is_closed:
                return  # It is a newer driver's.
        if not self._lost:
            await self._ray.kill(node.actor)

    def _what_failed(self, error: Exception) -> str:
        if self._options.address is not None:
            return (
                f"no Ray cluster could be reached at {self._options.address}: "
                f"{last_line(error)}; a cluster with token authentication needs RAY_AUTH_MODE "
                "and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH in this environment"
            )
        return (
            f"Ray could not be started on this machine: {last_line(error)}; "
            f"look at {self._options.home / 'ray'}"
        )
