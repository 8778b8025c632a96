"""Whether the last attempts of a sweep are better left to quicker nodes. Pure.

Nodes ask for work when they have room, so a slow one takes less of it by itself. At the end that
is not enough: the last attempt that a slow node takes may run when all others have long been idle.
So what a node would finish later than the others, who have to come round to it, is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

MUCH = 1.5
"""How many times as long a trial must take on a node as on the quickest: less is chance."""
WEIGHT = 0.2
"""Of the newest trial in a node's mean."""


@dataclass
class Pace:
    """How quick a node is."""

    slots: int = 0
    """Trials at once that it would take now; 0: it takes none."""
    trials: int = 0
    """Ended with a verdict."""
    seconds: float = 0.0
    """What one takes there; newer ones count more."""

    def ended(self, seconds: float) -> None:
        """A trial of the node came to a verdict in so many seconds."""
        self.trials += 1
        weight = max(WEIGHT, 1 / self.trials)
        self.seconds += (seconds - self.seconds) * weight

    @property
    def is_known(self) -> bool:
        """Whether it can be compared."""
        return self.slots > 0 and self.seconds > 0


class Paced(Protocol):
    """Whatever has a pace."""

    @property
    def pace(self) -> Pace:
        """Its own."""
        ...


class Waiting(Protocol):
    """A queue, as far as it matters here."""

    @property
    def waiting(self) -> int:
        """Attempts that nobody has."""
        ...

    def broken_since(self, nodes: Iterable[str]) -> float | None:
        """Since when the breakers of all these nodes have been open; None if one is not."""
        ...


def may_take(node: str, queue: Waiting, nodes: Mapping[str, Paced]) -> bool:
    """Whether a node that asks for work should have some.

    Not if others would be through with all that waits before it has ended one more trial. A node
    whose breaker is open is through with nothing: it gets probes alone.

    Args:
        node: its name.
        queue: what waits.
        nodes: all that are there, by name.
    """
    own = nodes[node].pace if node in nodes else Pace()
    others = [
        each.pace
        for name, each in nodes.items()
        if name != node and each.pace.is_known and queue.broken_since([name]) is None
    ]
    if not own.is_known or not others:
        return True
    quickest = min(each.seconds for each in others)
    if own.seconds < MUCH * quickest:
        return True
    quicker = [each for each in others if each.seconds < own.seconds]
    per_second = sum(each.slots / each.seconds for each in quicker)
    slowest = max(each.seconds for each in quicker)
    return queue.waiting / per_second + slowest >= own.seconds
