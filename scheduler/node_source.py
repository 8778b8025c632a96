"""What dispatch needs of nodes, whoever has them, and how long it waits for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from workers.contract.report import Orders, Progress


class NodeHandle(Protocol):
    """A node, as the driver speaks to it."""

    @property
    def name(self) -> str:
        """As records carry it."""
        ...

    @property
    def adopted(self) -> bool:
        """Whether another driver opened it: it may run tries that this one knows nothing of."""
        ...

    @property
    def metrics(self) -> str:
        """``host:port`` of its metrics; empty: it serves none."""
        ...

    async def exchange(self, orders: Orders) -> Progress:
        """Gives orders and waits for the answer.

        Raises:
            NodeLostError: the node is dead for certain.
            NodeGoneError: it will not answer again, but may still run what it holds.
            NodeSpareError: it runs nothing, was to be given nothing, and is not needed any more.
            NodeSilentError: there is no answer.
        """
        ...


class NodeSource(Protocol):
    """Where nodes come from."""

    async def find(self) -> Sequence[NodeHandle]:
        """The nodes that have joined since the last call; bounded in time.

        Adopted ones come before others.

        Raises:
            NoNodeError: there is no node, and none will come.
            ClusterLostError: what the nodes run on is lost.
            ClusterError: nodes cannot be asked for right now.
        """
        ...


class Search:
    """Whether a node that can work may still come. The time is given."""

    def __init__(self, now: float) -> None:
        """Nobody has looked yet."""
        self._found_at = self._looked_at = now
        self.is_hopeless = False
        """None will come, as the cluster said."""

    def looked(self, now: float) -> None:
        """A look for nodes has ended, whatever came of it."""
        self._looked_at = now

    def found(self, now: float) -> None:
        """There is one."""
        self._found_at, self.is_hopeless = now, False

    def is_in_vain(self, patience_s: float) -> bool:
        """Whether none was there for so long, and the last look did not bring one either.

        *Why the look counts and not the clock:* to open a node takes longer than the patience
        where its engine is busy, or where another node of the same look does not answer.
        """
        return self.is_hopeless or self._looked_at - self._found_at > patience_s


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
    newer: float = 5.0
    """Between looks for a newer driver."""
    no_node: float = 30.0
    """Without a node that can work, until the sweep ends for that."""
    cancel: float = 180.0
    """From the operator's second request until running trials are abandoned."""


DEFAULT_PAUSES = Pauses()
SCALED_PAUSES = Pauses(no_node=900.0)
"""Where a cluster is asked for nodes: a machine takes minutes to come, or to be replaced."""
