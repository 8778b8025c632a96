"""From the facts of a trial to its outcome. Pure, and the only place that decides it.

The order is the point: what makes a try say nothing of the model comes first, then the causes
of a fail in their fixed order. A verifier's dimensions are never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.contract.evidence import Evidence
from workers.contract.outcome import Cause, Outcome, Phase, outcome_of
from workers.gateway import CallResult, LedgerLine
from workers.trial.handoff import Collected, Driven, Ending, Frozen, Unverified, Verified

PROVIDER_CAUSES: dict[CallResult, Cause] = {
    CallResult.RATE_LIMITED: Cause.RATE_LIMITED,
    CallResult.PROVIDER_5XX: Cause.PROVIDER_5XX,
    CallResult.PROVIDER_AUTH: Cause.PROVIDER_AUTH,
    CallResult.PROVIDER_UNREACHABLE: Cause.PROVIDER_UNREACHABLE,
    CallResult.PROVIDER_MALFORMED: Cause.PROVIDER_MALFORMED,
}
PROVIDER_WINDOW_S = 30.0
"""A run that ended this soon after its last failed request ended because of it."""
CUT_S = 1.0
"""A request cut this close to the run's end was cut by the end of the run."""
PASS_REWARD = 1.0


def before_verification(
    driven: Driven, frozen: Frozen, collected: Collected, orchestrator: str
) -> Outcome | None:
    """The outcome, if the facts up to the evidence settle it; None: the verifier is asked."""
    lost = _lost(driven, frozen, orchestrator)
    if lost:
        return lost
    provider = provider_failure(driven, collected.ledger)
    if provider:
        return provider
    if collected.unsound:
        return outcome_of(
            Cause.EVIDENCE_UNSOUND,
            Phase.COLLECT,
            collected.unsound,
            ("evidence.json", "buzz/buzz-evidence-error.txt"),
        )
    return None


def _lost(driven: Driven, frozen: Frozen, orchestrator: str) -> Outcome | None:
    if driven.ending not in (Ending.AGENT_EXITED, Ending.CONTAINER_ENDED):
        return None
    logs = (f"logs/agents/{orchestrator}.stderr.log",)
    if frozen.oom_events > 0:
        return outcome_of(Cause.AGENT_OOM, Phase.DRIVE, driven.detail, logs)
    if driven.ending is Ending.CONTAINER_ENDED and not frozen.agent_exits:
        return outcome_of(Cause.CONTAINER_LOST, Phase.DRIVE, driven.detail, logs)
    return outcome_of(Cause.AGENT_DIED, Phase.DRIVE, driven.detail, logs)


def provider_failure(driven: Driven, ledger: Sequence[LedgerLine]) -> Outcome | None:
    """Whether the provider kept the agent from answering.

    At the agent's end the last one or more requests all failed for the provider's reasons, and
    either the run ended within 30 s of the last failure, or failures and the back-off between
    them cover more than half of the agent's time.
    """
    ended_s = driven.started_s + driven.seconds
    streak = _failed_at_end(ledger, ended_s)
    if not streak:
        return None
    first, (last, cause) = streak[0][0], streak[-1]
    last_failure_s = last.started_s + last.seconds
    since_last = max(0.0, ended_s - last_failure_s)
    covered = last_failure_s - first.started_s
    share = covered / driven.seconds if driven.seconds > 0 else 1.0
    if since_last > PROVIDER_WINDOW_S and share <= 0.5:
        return None
    return outcome_of(
        cause,
        Phase.DRIVE,
        f"the last {len(streak)} requests to endpoint {last.endpoint} failed, the last with "
        f"{_answer(last)}; the run ended "
        f"{since_last:.1f} s after the last, they cover {share:.0%} of the agent's time",
        ("usage.jsonl",),
    )


def _answer(line: LedgerLine) -> str:
    return "no answer" if line.status is None else f"HTTP status {line.status}"


def _failed_at_end(ledger: Sequence[LedgerLine], ended_s: float) -> list[tuple[LedgerLine, Cause]]:
    streak: list[tuple[LedgerLine, Cause]] = []
    for line in reversed(ledger):
        if line.result is CallResult.CUT and line.started_s + line.seconds >= ended_s - CUT_S:
            # Our own freeze cut it: it says nothing of the provider.
            continue
        cause = PROVIDER_CAUSES.get(line.result)
        if line.result is CallResult.CUT and line.status is None:
            # The agent waited as long as it does, and had no word.
            cause = Cause.PROVIDER_UNREACHABLE
        if cause is None:
            break
        streak.insert(0, (line, cause))
    return streak


def after_verification(
    driven: Driven, collected: Collected, verified: Verified | Unverified
) -> Outcome:
    """The outcome of a try whose evidence is sound."""
    if isinstance(verified, Unverified):
        return outcome_of(
            verified.cause, Phase.VERIFY, verified.detail, ("logs/verifier/output.log",)
        )
    if driven.ending is Ending.TIMEOUT:
        # Whatever the reward: a Buzz answer that came with the deadline is no answer.
        return outcome_of(Cause.AGENT_TIMEOUT, Phase.DRIVE, driven.detail, ("evidence.json",))
    if verified.reward >= PASS_REWARD:
        return outcome_of(Cause.NONE, Phase.SEAL)
    cause = _cause_of_fail(driven, collected)
    return outcome_of(cause, Phase.SEAL, driven.detail, ("reward.json", "evidence.json"))


def _cause_of_fail(driven: Driven, collected: Collected) -> Cause:
    if any(line.result is CallResult.REFUSED_BUDGET for line in collected.ledger):
        return Cause.BUDGET_EXHAUSTED
    if driven.ending in (Ending.STOPPED, Ending.TURN_FAILED, Ending.LOGS_FULL):
        return Cause.AGENT_STOPPED
    if not _has_reply(collected.evidence):
        return Cause.NO_REPLY
    return Cause.WRONG


def _has_reply(evidence: Evidence) -> bool:
    """Whether the orchestrator said anything after the task message."""
    after = False
    for message in evidence.messages:
        if message.id == evidence.task_event_id:
            after = True
        elif after and message.author_role == "orchestrator":
            return True
    return False
