"""The outcome of a try: closed enums, and the one table that ties them together.

Facts decide (Docker state, cgroup counters, the gateway's ledger, deadlines): never an
exception's name, never a log's text, and never a verifier's dimension.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from workers.contract.base import Strict


class Verdict(enum.StrEnum):
    """What a try says of the model; ``invalid`` says nothing and is never a zero."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INVALID = "invalid"


class Blame(enum.StrEnum):
    """Who caused what is not a pass; ``none`` belongs to a pass."""

    NONE = "none"
    MODEL = "model"
    PROVIDER = "provider"
    HARNESS = "harness"
    TASK = "task"
    OPERATOR = "operator"
    UNCLASSIFIED = "unclassified"


class Phase(enum.StrEnum):
    """The phases of a trial, in order."""

    PREPARE = "prepare"
    PROVISION = "provision"
    LAUNCH = "launch"
    DRIVE = "drive"
    FREEZE = "freeze"
    COLLECT = "collect"
    VERIFY = "verify"
    SEAL = "seal"


class Cause(enum.StrEnum):
    """Why a try ended as it did."""

    NONE = "none"

    WRONG = "wrong"
    NO_REPLY = "no_reply"
    AGENT_TIMEOUT = "agent_timeout"
    AGENT_STOPPED = "agent_stopped"
    AGENT_OOM = "agent_oom"
    BUDGET_EXHAUSTED = "budget_exhausted"

    RATE_LIMITED = "rate_limited"
    PROVIDER_5XX = "provider_5xx"
    PROVIDER_AUTH = "provider_auth"
    PROVIDER_UNREACHABLE = "provider_unreachable"
    PROVIDER_MALFORMED = "provider_malformed"

    IMAGE_BUILD = "image_build"
    CONTAINER_START = "container_start"
    CONTAINER_LOST = "container_lost"
    RELAY_UNAVAILABLE = "relay_unavailable"
    PROVISION_FAILED = "provision_failed"
    SEED_FAILED = "seed_failed"
    AGENT_LAUNCH = "agent_launch"
    READINESS_TIMEOUT = "readiness_timeout"
    AGENT_DIED = "agent_died"
    FREEZE_FAILED = "freeze_failed"
    EVIDENCE_EXPORT = "evidence_export"
    EVIDENCE_UNSOUND = "evidence_unsound"
    STORE_UNAVAILABLE = "store_unavailable"
    DISK_FULL = "disk_full"
    NODE_OOM = "node_oom"
    CLOCK_SKEW = "clock_skew"
    NODE_LOST = "node_lost"
    LEASE_EXPIRED = "lease_expired"

    VERIFIER_CRASH = "verifier_crash"
    VERIFIER_TIMEOUT = "verifier_timeout"
    REWARD_MISSING = "reward_missing"
    REWARD_MALFORMED = "reward_malformed"
    VERIFIER_SETUP = "verifier_setup"

    CANCELLED = "cancelled"
    SWEEP_BUDGET = "sweep_budget"

    UNCLASSIFIED = "unclassified"


class Retry(enum.StrEnum):
    """How an invalid try is tried again."""

    NEVER = "never"
    WHOLE = "whole"
    """Up to the sweep's ``limits.max_tries``."""
    ONCE = "once"
    """A second whole try, and no third."""
    ON_RESUME = "on_resume"
    """Not in this run: the operator stopped it."""


class Rule(NamedTuple):
    """What a blame means for the score and the queue."""

    verdict: Verdict
    retry: Retry


RULES: dict[Blame, Rule] = {
    Blame.NONE: Rule(Verdict.PASS, Retry.NEVER),
    Blame.MODEL: Rule(Verdict.FAIL, Retry.NEVER),
    Blame.PROVIDER: Rule(Verdict.INVALID, Retry.WHOLE),
    Blame.HARNESS: Rule(Verdict.INVALID, Retry.WHOLE),
    Blame.TASK: Rule(Verdict.INVALID, Retry.ONCE),
    Blame.OPERATOR: Rule(Verdict.INVALID, Retry.ON_RESUME),
    Blame.UNCLASSIFIED: Rule(Verdict.INVALID, Retry.ONCE),
}

_CAUSES: dict[Blame, tuple[Cause, ...]] = {
    Blame.NONE: (Cause.NONE,),
    Blame.MODEL: (
        Cause.WRONG,
        Cause.NO_REPLY,
        Cause.AGENT_TIMEOUT,
        Cause.AGENT_STOPPED,
        Cause.AGENT_OOM,
        Cause.BUDGET_EXHAUSTED,
    ),
    Blame.PROVIDER: (
        Cause.RATE_LIMITED,
        Cause.PROVIDER_5XX,
        Cause.PROVIDER_AUTH,
        Cause.PROVIDER_UNREACHABLE,
        Cause.PROVIDER_MALFORMED,
    ),
    Blame.HARNESS: (
        Cause.IMAGE_BUILD,
        Cause.CONTAINER_START,
        Cause.CONTAINER_LOST,
        Cause.RELAY_UNAVAILABLE,
        Cause.PROVISION_FAILED,
        Cause.SEED_FAILED,
        Cause.AGENT_LAUNCH,
        Cause.READINESS_TIMEOUT,
        Cause.AGENT_DIED,
        Cause.FREEZE_FAILED,
        Cause.EVIDENCE_EXPORT,
        Cause.EVIDENCE_UNSOUND,
        Cause.STORE_UNAVAILABLE,
        Cause.DISK_FULL,
        Cause.NODE_OOM,
        Cause.CLOCK_SKEW,
        Cause.NODE_LOST,
        Cause.LEASE_EXPIRED,
    ),
    Blame.TASK: (
        Cause.VERIFIER_CRASH,
        Cause.VERIFIER_TIMEOUT,
        Cause.REWARD_MISSING,
        Cause.REWARD_MALFORMED,
        Cause.VERIFIER_SETUP,
    ),
    Blame.OPERATOR: (Cause.CANCELLED, Cause.SWEEP_BUDGET),
    Blame.UNCLASSIFIED: (Cause.UNCLASSIFIED,),
}

BLAME_OF: dict[Cause, Blame] = {
    cause: blame for blame, causes in _CAUSES.items() for cause in causes
}
"""Every cause belongs to exactly one blame."""


class ProviderFailure(Strict):
    """The facts by which a provider is to blame: two figures, either of which suffices."""

    endpoint: str
    """By its name in the condition."""
    failures: int
    """Requests in a row that failed for the provider's reasons, none answered after them."""
    last_status: int | None
    """HTTP status of the last of them; null: no answer came."""
    since_last_s: float
    """From the last failure to the end of the agent's time."""
    share: float
    """Of the agent's time that failures and the back-off between them cover, 0 to 1."""


class Outcome(Strict):
    """How a try ended, decided from facts."""

    verdict: Verdict
    blame: Blame
    cause: Cause
    phase: Phase
    """The phase in which it was decided; ``seal`` for a try that ran to its end."""
    detail: str = ""
    """One sentence for a person: what was attempted, on what, what to look at."""
    evidence_refs: tuple[str, ...] = ()
    """Files of the try that show it, relative to the try's folder."""
    provider: ProviderFailure | None = None
    """Of a provider's causes only."""


def outcome_of(
    cause: Cause,
    phase: Phase,
    detail: str = "",
    evidence_refs: tuple[str, ...] = (),
    provider: ProviderFailure | None = None,
) -> Outcome:
    """The outcome that a cause implies: blame and verdict follow from the table."""
    blame = BLAME_OF[cause]
    return Outcome(
        verdict=RULES[blame].verdict,
        blame=blame,
        cause=cause,
        phase=phase,
        detail=detail,
        evidence_refs=evidence_refs,
        provider=provider,
    )
