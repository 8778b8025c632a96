"""What a running sweep shows of itself, and who wants to see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from workers.contract.result import TryRecord


@dataclass(frozen=True)
class ConditionView:
    """The attempts of one condition, each counted in exactly one of the first five."""

    condition: str
    waiting: int
    """For a node, to be tried again, or for a resume."""
    running: int
    passed: int
    failed: int
    invalid: int
    """Given up: tries spent without a verdict."""
    invalid_tries: int
    """Invalid tries so far, whatever became of their attempts."""


@dataclass(frozen=True)
class SweepView:
    """One moment of a sweep."""

    sweep: str
    conditions: tuple[ConditionView, ...]
    elapsed_s: float
    attempts_per_minute: float
    """Over the last minute or since the start."""
    eta_s: float | None
    """Null while nothing has ended."""
    nodes: int
    stopping: bool
    """No new leases are given: the operator asked to stop."""


class Observer(Protocol):
    """Told of a sweep's progress by the driver, in the driver's thread; must not block."""

    def moved(self, view: SweepView) -> None:
        """About once a second, and at the end."""
        ...

    def ended(self, record: TryRecord) -> None:
        """Once for every try that ended."""
        ...

    def note(self, text: str) -> None:
        """A sentence for the operator: a node lost, a try given back."""
        ...


@dataclass(frozen=True)
class SweepEnd:
    """How a run of a sweep ended."""

    sweep: str
    state: Literal["settled", "interrupted", "infrastructure"]
    """``settled``: every attempt is committed or dead; ``infrastructure``: no node could work."""
    reason: str = ""
    idle: bool = False
    """Whether nothing was open, so that no node was asked."""
