"""What the queue knows of attempts, cells, conditions and nodes. Values, without rules."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler.queue.states import State
from scheduler.retry import Spent
from workers.contract.outcome import Cause
from workers.contract.spec import Epoch

if TYPE_CHECKING:
    from scheduler.queue.breaker import Breaker, EndpointBreaker


@dataclass(slots=True)
class Counts:
    """The attempts of one condition by state; every attempt is in exactly one of the first six."""

    planned: int = 0
    held: int = 0
    """Leased, running or lost."""
    passed: int = 0
    failed: int = 0
    dead: int = 0
    parked: int = 0
    invalid_tries: int = 0

    @property
    def total(self) -> int:
        """All attempts of the condition."""
        return self.planned + self.held + self.passed + self.failed + self.dead + self.parked


@dataclass(slots=True, eq=False)
class Condition:
    """One condition and its attempts by state."""

    name: str
    counts: Counts = field(default_factory=Counts)
    every: int = 0
    """Of a canary: attempts of other conditions between two of it; 0: it takes turns with them."""
    due: int = 0
    """Of a canary: after so many attempts of other conditions comes its next."""


@dataclass(slots=True, eq=False)
class Line:
    """The attempts of one condition that wait for the same endpoints, in their order."""

    condition: Condition
    breakers: tuple[EndpointBreaker, ...] = ()
    """Of the endpoints that they use."""
    waiting: deque[Attempt] = field(default_factory=deque)
    planned: int = 0
    """Attempts in that state, those in back-off included."""
    parked_by: int = 0
    """Open breakers of its endpoints; it has its turn only while there are none."""
    in_turn: bool = False


@dataclass(slots=True, eq=False)
class Cell:
    """One cell: its attempts, and how many of its tries in a row said nothing."""

    cell: str
    line: Line
    attempts: list[Attempt] = field(default_factory=list)
    invalid_in_a_row: int = 0
    failed_on: set[str] = field(default_factory=set)
    """The nodes of those tries."""
    poisoned: bool = False

    @property
    def condition(self) -> Condition:
        """Its condition."""
        return self.line.condition


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt: where it is, and the last lease of it."""

    attempt: str
    index: int
    cell: Cell
    spent: Spent
    state: State = State.PLANNED
    epoch: Epoch | None = None
    """Of the last lease."""
    node: str = ""
    """That holds it, or held it last."""
    leased_at: float = 0.0
    """Of the last lease, on the queue's clock."""
    poisons: bool = True
    """Whether the loss of its lease counts towards its cell's poison limit."""
    probes: tuple[Breaker, ...] = ()
    """The open breakers that wait for what its lease shows."""
    cause: Cause | None = None
    """Of its commit, else of its last try; null while none has ended, or nobody knows."""

    @property
    def try_(self) -> str:
        """The last try's folder name; empty before the first."""
        return "" if self.epoch is None else str(self.epoch)


@dataclass(frozen=True, slots=True)
class LostLease:
    """A lease that ended without the node's word: the store is asked before it is given again."""

    attempt: str
    index: int
    cell: str
    epoch: Epoch
    node: str
    leased_at: float
    """On the queue's clock, seconds."""


@dataclass(slots=True)
class NodeLeases:
    """The leases that one node holds; all are renewed by each of the driver's orders."""

    renewed_at: float
    """On the queue's clock, seconds."""
    held: dict[str, Attempt] = field(default_factory=dict)
