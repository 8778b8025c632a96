"""What a try leaves behind: its record, and for a counted one the commit of its attempt."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.outcome import Blame, Cause, Phase, Verdict


class Usage(Strict):
    """Sums over the gateway's ledger of a try."""

    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    """Over the calls whose cost is known."""
    unknown_cost_calls: int = 0
    """Calls for which the provider reported no usage: unknown, never zero."""


class Digests(Strict):
    """What was run, by content."""

    task: str
    condition: str
    image: str | None = None
    """Docker's image id."""
    evidence: str | None = None


class TryRecord(Strict):
    """``try.json``: how one try ended. ``result.json`` is the same document, committed."""

    schema_version: Literal[1] = 1
    sweep: str
    attempt: str
    index: int
    try_: str = Field(alias="try")
    """``<generation>-<counter>``, the try's folder."""
    cell: str
    condition: str
    task: str
    layer: str
    verdict: Verdict
    blame: Blame
    phase: Phase
    cause: Cause
    detail: str = ""
    evidence_refs: tuple[str, ...] = ()
    reward: float | None = None
    dimensions: dict[str, float] = Field(default_factory=dict)
    started_at: str
    """RFC 3339, UTC."""
    ended_at: str
    phase_seconds: dict[str, float] = Field(default_factory=dict)
    usage: Usage = Usage()
    node: str
    epoch: tuple[int, int]
    digests: Digests
    files: dict[str, str] = Field(default_factory=dict)
    """Every file of the try, relative name to SHA-256."""
    leftovers: tuple[str, ...] = ()
    """What teardown could not remove, for the reaper."""
    silences: tuple[float, ...] = ()
    """Seconds from the drive's start at which a silence was noticed."""
    oom_events: int = 0
    traceback: str | None = None
    """Of an unclassified fault only."""


def attempt_prefix(sweep: str, attempt: str) -> str:
    """The key prefix of an attempt's commit."""
    return f"sweeps/{sweep}/attempts/{attempt[:2]}/{attempt}"


def result_key(sweep: str, attempt: str) -> str:
    """The key of an attempt's commit: created once, never replaced."""
    return f"{attempt_prefix(sweep, attempt)}/result.json"


def try_prefix(sweep: str, attempt: str, try_: str) -> str:
    """The key prefix of one try's files."""
    return f"sweeps/{sweep}/tries/{attempt[:2]}/{attempt}/{try_}"
