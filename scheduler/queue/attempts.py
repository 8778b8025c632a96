"""What the queue knows of attempts, cells, conditions and nodes. Values, without rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.queue.states import State
from scheduler.retry import Spent
from workers.contract.spec import Epoch


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


@dataclass(slots=True, eq=False)
class Cell:
    """One cell: its attempts, and how many of its tries in a row said nothing."""

    cell: str
    condition: Condition
    attempts: list[Attempt] = field(default_factory=list)
    invalid_in_a_row: int = 0
    poisoned: bool = False


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
