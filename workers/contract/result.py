"""What a try leaves behind: its record, and for a counted one the commit of its attempt."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from workers.contract.base import FormatError, Strict
from workers.contract.budget import Spending
from workers.contract.outcome import Blame, Cause, Phase, ProviderFailure, Verdict
from workers.contract.relay import RelayUse
from workers.contract.spec import TimeoutMultipliers
from workers.contract.task import Freeze


class Usage(Strict):
    """Sums over the gateway's ledger of a try."""

    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    """As reported, everything included; so are the next four."""
    cached_input_tokens: int = 0
    """Of the input: read from a cache."""
    cache_write_tokens: int = 0
    """Of the input: written to a cache."""
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """Of the output: thought and not said."""
    cost_usd: float = 0.0
    """By the condition's prices, over the calls whose cost is known."""
    uncached_cost_usd: float = 0.0
    """Of the same calls, as if nothing had been read from a cache."""
    unknown_cost_calls: int = 0
    """Calls for which the provider reported no usage: unknown, never zero."""
    counted: Spending = Spending()
    """What the sweep's budget counts: calls of unknown cost with an assumption."""


class Tokens(Strict):
    """Sums over the successful calls of one agent."""

    calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class TokenDifference(Strict):
    """An agent whose own log counts other tokens than the gateway's ledger, which is billed."""

    agent: str
    log: Tokens = Tokens()
    ledger: Tokens = Tokens()
    summaries: int = 0
    """Calls that the log has without counts: so many may be in the ledger alone."""
    only_in_log: int = 0
    """Calls of the log that no line of the ledger matches."""
    only_in_ledger: int = 0
    unread: str = ""
    """Why the log could not be compared; empty: it was."""

    def told(self) -> str:
        """The difference in a line."""
        if self.unread:
            return f"{self.agent}: the tokens in its log could not be compared: {self.unread}"
        log, ledger = self.log, self.ledger
        return (
            f"{self.agent}: its log counts {log.calls} calls, {log.input_tokens} tokens in "
            f"({log.cached_input_tokens} cached), {log.output_tokens} out; the ledger "
            f"{ledger.calls}, {ledger.input_tokens} ({ledger.cached_input_tokens}), "
            f"{ledger.output_tokens}"
        )


class Digests(Strict):
    """What was run, by content."""

    task: str
    condition: str
    image: str | None = None
    """Docker's image id."""
    pulled: str | None = None
    """Of an image that was pulled by its task's reference: ``repository@digest``."""
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
    endpoint: str | None = None
    """The endpoint that kept the agent from answering: where, and only where, ``blame`` is the
    provider's."""
    provider: ProviderFailure | None = None
    """The figures by which that was decided."""
    probe: bool = False
    """The try was made to see whether an endpoint is back: if its provider fails once more, that
    spends none of the attempt's tries."""
    reward: float | None = None
    dimensions: dict[str, float] = Field(default_factory=dict)
    pass_threshold: float | None = None
    """The least reward that passed, where that is not 1."""
    timeout_multipliers: TimeoutMultipliers | None = None
    """What the task's time limits were multiplied with, where that is not 1."""
    started_at: str
    """RFC 3339, UTC."""
    ended_at: str
    phase_seconds: dict[str, float] = Field(default_factory=dict)
    usage: Usage = Usage()
    token_differences: tuple[TokenDifference, ...] = ()
    """Agents of the production stack whose log does not agree with ``usage.jsonl``."""
    node: str
    epoch: tuple[int, int]
    digests: Digests
    relay: RelayUse | None = None
    """The deployment whose relay was used; null: the try had one of its own."""
    files: dict[str, str] = Field(default_factory=dict)
    """Every file of the try, relative name to SHA-256."""
    leftovers: tuple[str, ...] = ()
    """What teardown could not remove, for the reaper."""
    silences: tuple[float, ...] = ()
    """Seconds from the drive's start at which a silence was noticed."""
    oom_events: int = 0
    agent_exits: dict[str, int | None] = Field(default_factory=dict)
    """Exit code, 128 + signal, of each agent that ended by itself; null: it cannot be read."""
    freeze: Freeze | None = None
    """How the container was frozen, which may differ from what its task says (``restart`` stands in
    for ``all``); null: the try did not come that far."""
    graded_live: bool = False
    """Something that the agent had started still ran while the container's state was graded."""
    survivors: tuple[str, ...] = ()
    """What ran then: pid on the node and command, the first ones; all are in ``freeze.json``."""
    log_bytes_dropped: dict[str, int] = Field(default_factory=dict)
    """Logs of which only head and tail are kept: name to the bytes cut out between them."""
    storage_soft_mb: int | None = None
    """Where the engine has no quota: the most that the agents' container was seen to hold beside
    its mounts, in MB. More than the task's ``storage_mb`` ends a try only at twice as much."""
    clock_skew_s: float | None = None
    """How far the node's wall clock was ahead of the driver's, hence also ``started_at`` and
    ``ended_at``; null: by 5 s or less, or not measured. Durations are never affected."""
    traceback: str | None = None
    """Of an unclassified fault only."""


def attempt_prefix(sweep: str, attempt: str) -> str:
    """The key prefix of an attempt's commit."""
    return f"sweeps/{sweep}/attempts/{attempt[:2]}/{attempt}"


def result_key(sweep: str, attempt: str) -> str:
    """The key of an attempt's commit: created once, never replaced."""
    return f"{attempt_prefix(sweep, attempt)}/result.json"


_TRY = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")
_TRY_RECORD = re.compile(rf"sweeps/[^/]+/tries/[^/]+/[^/]+/{_TRY.pattern}/try\.json")


def is_try(name: str) -> bool:
    """Whether a folder's name is that of a try."""
    return _TRY.fullmatch(name) is not None


def is_try_record(key: str) -> bool:
    """Whether the record of a try lies at a key.

    Below it lie files with names that tasks and agents chose, and one may be the record's.
    """
    return _TRY_RECORD.fullmatch(key) is not None


def record_at(key: str, data: bytes) -> TryRecord:
    """The record of a try, or the commit of an attempt, as it lies at its key.

    Raises:
        FormatError: it is none, or another attempt's.
    """
    record = TryRecord.from_json(data, key)
    if record.attempt != key.split("/")[4]:
        # Else the other attempt would count as committed, and this one be waited for in vain.
        raise FormatError(f"{key}: it is the record of attempt {record.attempt}")
    return record


def try_prefix(sweep: str, attempt: str, try_: str) -> str:
    """The key prefix of one try's files."""
    return f"sweeps/{sweep}/tries/{attempt[:2]}/{attempt}/{try_}"
