"""What a profile is: a model's conduct, and the results that it is known for."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from workers.model.play import Script
from workers.model.wake import Wake

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
    loses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By a task's bare name, exactly the dimensions that are lost there; none: it passes.

    Where a task is not named, nothing is promised.
    """
