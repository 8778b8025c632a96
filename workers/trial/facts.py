"""What a try's record says beside its outcome; filled as the trial goes."""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.contract.relay import RelayUse
from workers.contract.result import TokenDifference, Usage
from workers.contract.task import Freeze


@dataclass
class Facts:
    """Of one try."""

    image: str | None = None
    pulled: str | None = None
    evidence: str | None = None
    relay: RelayUse | None = None
    reward: float | None = None
    dimensions: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    token_differences: tuple[TokenDifference, ...] = ()
    silences: tuple[float, ...] = ()
    oom_events: int = 0
    agent_exits: dict[str, int | None] = field(default_factory=dict)
    freeze: Freeze | None = None
    graded_live: bool = False
    survivors: tuple[str, ...] = ()
    log_bytes_dropped: dict[str, int] = field(default_factory=dict)
    storage_soft_mb: int | None = None
    leftovers: list[str] = field(default_factory=list)
    traceback: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
