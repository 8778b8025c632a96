"""What a profile is: a model's conduct, and the results that it is known for."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from workers.model.play import Script
from workers.model.wake import Wake

Losses = Mapping[str, frozenset[str]]
"""By a task's bare name, dimensions that are lost."""

Conduct = Callable[[Sequence[Wake]], Script]
"""The messages that woke the agent so far to what it does about them."""


class Service(enum.Enum):
    """How the endpoint itself behaves."""

    PROMPT = "prompt"
    SLOW = "slow"
    RATE_LIMITED = "rate_limited"
    """429 to every request."""
    BROKEN = "broken"
    """Success with a body that breaks off."""


@dataclass(frozen=True)
class Profile:
    """A model's conduct."""

    summary: str
    script: Conduct
    service: Service = Service.PROMPT
    loses: Losses = field(default_factory=dict)
    """Exactly what is lost in each task named; without a dimension it passes there.

    Where a task is not named, nothing is promised.
    """


def losses(by_task: Mapping[str, str]) -> Losses:
    """Losses written as the names of dimensions with spaces between."""
    return {task: frozenset(dimensions.split()) for task, dimensions in by_task.items()}
