"""A node actor as dispatch sees it: words go out and come back, and it says when it is spare."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.errors import NodeGoneError, NodeLostError, NodeSpareError
from scheduler.ray_client import RayActor, RayClient, RayHost
from workers.contract.report import Orders, Progress


class RayNode:
    """See the module."""

    def __init__(
        self,
        name: str,
        actor: RayActor,
        ray: RayClient,
        host: RayHost,
        *,
        slots: int,
        metrics: str,
        adopted: bool,
        may_go: Callable[[RayNode], bool],
    ) -> None:
        self.name = name
        """As records carry it."""
        self.slots = slots
        """Trials at once."""
        self.metrics = metrics
        """See ``NodeHandle``."""
        self.actor = actor
        self._ray = ray
        self.host = host
        self.adopted = adopted
        """Whether another driver opened it: it may run tries."""
        self._may_go = may_go
        self._is_idle = False
        """Whether it ran nothing when it answered last."""
        self.is_spare = False
        """Whether it is to be ended, since it is not needed any more."""
        self.is_dead = False
        self.is_closed = False
        """Whether it has ended its trials and let go of what they shared."""

    async def exchange(self, orders: Orders) -> Progress:
        """Gives orders and waits for the answer.

        Raises:
            NodeLostError: the actor is dead for certain.
            NodeGoneError: Ray has lost its machine; its process may live on there.
            NodeSpareError: it runs nothing, is given nothing, and is not needed any more.
            NodeSilentError: it cannot be reached.
        """
        if self._is_idle and not orders.leases and self._may_go(self):
            self.is_spare = True
            raise NodeSpareError(self.name, "the others have room for all that is open")
        try:
            answer = await self.actor.exchange(orders.to_json())
        except NodeLostError as error:
            self.is_dead = True
            # Ray's node manager sees its workers die. Where it died itself, nobody has.
            if not await self._ray.is_alive(self.host):
                raise NodeGoneError(self.name, error.reason) from error
            raise
        progress = Progress.from_json(answer, f"progress of node {self.name}")
        self._is_idle = not progress.running
        return progress
