"""From the facts of a trial to its outcome. Pure, and the only place that decides it.

The order is the point: what makes a try say nothing of the model comes first, then the causes
of a fail in their fixed order. A verifier's dimensions are never looked at.
"""

from __future__ import annotations

from workers.contract.evidence import Evidence
from workers.contract.outcome import Cause, Outcome, Phase, outcome_of
from workers.gateway import CallResult
from workers.trial.handoff import (
    Collected,
    Driven,
    Ending,
    Frozen,
    PlayedOut,
    Unverified,
    Verified,
)
from workers.trial.provider import provider_failure

PASS_REWARD = 1.0
SIGKILLED = 128 + 9


def before_verification(
    driven: Driven, frozen: Frozen, collected: Collected, orchestrator: str
) -> Outcome | None:
    """The outcome, if the facts up to the evidence settle it; None: the verifier is asked."""
    if any(line.result is CallResult.REFUSED_SWEEP_BUDGET for line in collected.ledger):
        return outcome_of(
            Cause.SWEEP_BUDGET,
            Phase.DRIVE,
            "a model call was refused, since the budget of the sweep is spent",
            ("usage.jsonl",),
        )
    lost = _lost(driven, frozen, orchestrator)
    if lost:
        return lost
    provider = provider_failure(driven, collected.ledger, orchestrator)
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
    """Whether agent or container ended before we ended them, and through whom."""
    if driven.ending not in (Ending.AGENT_EXITED, Ending.CONTAINER_ENDED):
        return None
    logs = (f"logs/agents/{orchestrator}.stderr.log",)
    detail = "; ".join((driven.detail, *_ends(frozen)))
    if frozen.oom_events > 0 and _was_killed(driven, frozen):
        if not killed_for_the_node(frozen):
            return outcome_of(Cause.AGENT_OOM, Phase.DRIVE, detail, logs)
        detail += "; the container's own memory limit had not been reached"
        return outcome_of(Cause.NODE_OOM, Phase.DRIVE, detail, logs)
    if driven.ending is Ending.CONTAINER_ENDED and not frozen.agent_exits:
        return outcome_of(Cause.CONTAINER_LOST, Phase.DRIVE, detail, logs)
    return outcome_of(Cause.AGENT_DIED, Phase.DRIVE, detail, logs)


def killed_for_the_node(frozen: Frozen) -> bool:
    """Whether the kernel killed in the container though its own limit was not reached."""
    return frozen.oom_events > 0 and not frozen.limit_reached


def _was_killed(driven: Driven, frozen: Frozen) -> bool:
    """Whether what ended was killed as the kernel kills for memory.

    A count of OOM kills alone does not say so: it counts children too, which the agent may
    have outlived by long.
    """
    if frozen.agent_exits:
        return SIGKILLED in frozen.agent_exits.values()
    ended = frozen.exit_state
    return (
        driven.ending is Ending.CONTAINER_ENDED
        and ended is not None
        and ended.exit_code == SIGKILLED
        and not ended.signalled
    )


def _ends(frozen: Frozen) -> list[str]:
    """How the agents ended that did, a line each."""
    told = []
    for agent, code in sorted(frozen.agent_exits.items()):
        if code is None:
            told.append(f"how {agent} ended cannot be read")
        elif code > 128:
            told.append(f"{agent} was killed by signal {code - 128}")
        else:
            told.append(f"{agent} ended with exit code {code}")
    if frozen.oom_events:
        told.append(f"{frozen.oom_events} processes of the container were killed for memory")
    return told


def after_verification(
    driven: Driven,
    collected: Collected,
    verified: Verified | Unverified,
    *,
    by_state: bool = False,
    threshold: float = PASS_REWARD,
    node_oom: bool = False,
) -> Outcome:
    """The outcome of a try whose evidence is sound.

    Args:
        driven: the drive's facts.
        collected: the evidence and the ledger.
        verified: the verifier's word.
        by_state: the container's state was graded: the reward counts however the drive ended,
            and nobody had to reply.
        threshold: the least reward that passes where the container's state was graded.
        node_oom: as ``killed_for_the_node`` says; no fail is the model's then.
    """
    if isinstance(verified, Unverified):
        return outcome_of(
            verified.cause, Phase.VERIFY, verified.detail, ("logs/verifier/output.log",)
        )
    # Whatever the reward: a Buzz answer that came with the deadline is no answer.
    too_late = driven.ending is Ending.TIMEOUT and not by_state
    least = threshold if by_state else PASS_REWARD
    if verified.reward >= least and not too_late:
        return outcome_of(Cause.NONE, Phase.SEAL)
    if node_oom:
        detail = "a command of the agent's was killed for memory that the node did not have"
        return outcome_of(Cause.NODE_OOM, Phase.DRIVE, detail, ("evidence.json",))
    if too_late:
        return outcome_of(Cause.AGENT_TIMEOUT, Phase.DRIVE, driven.detail, ("evidence.json",))
    cause = _cause_of_fail(driven, collected, by_state)
    return outcome_of(cause, Phase.SEAL, driven.detail, ("reward.json", "evidence.json"))


def after_play(
    out: PlayedOut, frozen: Frozen, verified: Verified | Unverified, threshold: float
) -> Outcome:
    """The outcome of a try without a model.

    A solution that fails is a fail like a model's: nothing of the harness broke. Whose fault it
    is, the task's or its solution's, no fact tells.

    Args:
        out: how the solution ended.
        frozen: the container as it was graded.
        verified: the verifier's word.
        threshold: the least reward that passes.
    """
    if isinstance(verified, Unverified):
        return outcome_of(
            verified.cause, Phase.VERIFY, verified.detail, ("logs/verifier/output.log",)
        )
    if verified.reward >= threshold:
        return outcome_of(Cause.NONE, Phase.SEAL)
    refs = ("logs/verifier/output.log", *(("logs/agents/oracle.log",) if out.exit_code else ()))
    if killed_for_the_node(frozen):
        detail = "a command of the solution was killed for memory that the node did not have"
        return outcome_of(Cause.NODE_OOM, Phase.DRIVE, detail, refs)
    detail = out.detail
    if out.exit_code:
        detail = f"solution/solve.sh ended with exit code {out.exit_code}"
    cause = Cause.WRONG
    if out.ending is Ending.TIMEOUT:
        cause = Cause.AGENT_TIMEOUT
    elif out.ending is Ending.STORAGE_FULL:
        cause = Cause.AGENT_STOPPED
    elif out.exit_code == SIGKILLED and frozen.oom_events > 0:
        cause = Cause.AGENT_OOM
    return outcome_of(cause, Phase.SEAL, detail, refs)


def _cause_of_fail(driven: Driven, collected: Collected, by_state: bool) -> Cause:
    if any(line.result is CallResult.REFUSED_BUDGET for line in collected.ledger):
        return Cause.BUDGET_EXHAUSTED
    if driven.ending is Ending.TIMEOUT:
        return Cause.AGENT_TIMEOUT
    if driven.ending in (Ending.STOPPED, Ending.TURN_FAILED, Ending.STORAGE_FULL):
        return Cause.AGENT_STOPPED
    if not by_state and not _has_reply(collected.evidence):
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
