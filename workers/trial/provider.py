"""Whether a provider kept an agent from answering: from the gateway's ledger alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from workers.contract.outcome import Cause, Outcome, Phase, ProviderFailure, outcome_of
from workers.gateway import CallResult, LedgerLine
from workers.trial.handoff import Driven, Ending
from workers.trial.held_back import held_back_s

PROVIDER_CAUSES: dict[CallResult, Cause] = {
    CallResult.RATE_LIMITED: Cause.RATE_LIMITED,
    CallResult.PROVIDER_5XX: Cause.PROVIDER_5XX,
    CallResult.PROVIDER_AUTH: Cause.PROVIDER_AUTH,
    CallResult.PROVIDER_UNREACHABLE: Cause.PROVIDER_UNREACHABLE,
    CallResult.PROVIDER_MALFORMED: Cause.PROVIDER_MALFORMED,
}
PROVIDER_WINDOW_S = 30.0
"""A run that ended this soon after its last failed request ended because of it."""
PROVIDER_SHARE = 0.5
"""A provider that was away for more of the agent's time than this left it too little."""
CUT_S = 1.0
"""A request cut this close to the run's end was cut by the end of the run."""


def provider_failure(
    driven: Driven, ledger: Sequence[LedgerLine], orchestrator: str
) -> Outcome | None:
    """Whether the provider kept an agent from answering.

    At the agent's end its last one or more requests all failed for the provider's reasons, and
    either the run ended within 30 s of the last failure, or failures and the back-off between
    them cover more than half of the agent's time. A teammate's provider is asked about only
    where the orchestrator came to no end of its own.

    An orchestrator that came to its deadline was kept from answering as well if for more than half
    of its time all it asked for was held back for the provider's sake (``held_back``).
    """
    by_agent: dict[str | None, list[LedgerLine]] = {orchestrator: []}
    for line in ledger:
        by_agent.setdefault(line.agent, []).append(line)
    for agent, lines in by_agent.items():
        if agent == orchestrator or (agent is not None and driven.ending is Ending.TIMEOUT):
            outcome = _failure_of(agent, lines, driven)
            if outcome:
                return outcome
    if driven.ending is Ending.TIMEOUT:
        return _held_back(orchestrator, by_agent[orchestrator], driven)
    return None


def _held_back(agent: str, lines: Sequence[LedgerLine], driven: Driven) -> Outcome | None:
    ended_s = driven.started_s + driven.seconds
    seconds = held_back_s(lines, driven.started_s, ended_s)
    if seconds <= PROVIDER_SHARE * driven.seconds:
        return None
    share = seconds / driven.seconds
    waited = [line for line in lines if line.held_s > 0]
    return outcome_of(
        Cause.RATE_LIMITED,
        Phase.DRIVE,
        f"for {share:.0%} of its time all that {agent} asked of endpoint {waited[-1].endpoint} "
        f"waited for the account's turn, {len(waited)} requests",
        ("usage.jsonl",),
        ProviderFailure(
            endpoint=waited[-1].endpoint or "",
            failures=0,
            last_status=waited[-1].status,
            since_last_s=0.0,
            share=round(share, 4),
        ),
    )


def _failure_of(agent: str, lines: Sequence[LedgerLine], driven: Driven) -> Outcome | None:
    ended_s = driven.started_s + driven.seconds
    failed, waiting = _failed_at_end(lines, ended_s)
    failures = failed + ([waiting] if waiting else [])
    if not failures:
        return None
    last_end_s = min(ended_s, max(_end_s(line) for line in failures))
    covered = last_end_s - max(failures[0].started_s, driven.started_s)
    share = min(1.0, max(0.0, covered / driven.seconds)) if driven.seconds > 0 else 1.0
    since_last = max(0.0, ended_s - _end_s(failed[-1])) if failed else 0.0
    # A request that only the end of the run cut counts by how long it was waited for.
    soon = bool(failed) and since_last <= PROVIDER_WINDOW_S
    if not soon and share <= PROVIDER_SHARE:
        return None
    last = failures[-1]
    cause = _provider_cause(failed[-1] if failed else last, answered=False)
    assert cause is not None  # else it were no failure
    return outcome_of(
        cause,
        Phase.DRIVE,
        f"the last {len(failures)} requests of {agent} to endpoint {last.endpoint} failed, the "
        f"last with {_answer(last)}; the run ended {since_last:.1f} s after the last failure, "
        f"they cover {share:.0%} of the agent's time",
        ("usage.jsonl",),
        ProviderFailure(
            endpoint=last.endpoint or "",
            failures=len(failures),
            last_status=last.status,
            since_last_s=round(since_last, 3),
            share=round(share, 4),
        ),
    )


def _answer(line: LedgerLine) -> str:
    return "no answer" if line.status is None else f"HTTP status {line.status}"


def _end_s(line: LedgerLine) -> float:
    return line.started_s + line.seconds


def _failed_at_end(
    lines: Sequence[LedgerLine], ended_s: float
) -> tuple[list[LedgerLine], LedgerLine | None]:
    """The failures with no success after them, and a request that was never answered.

    The latter is one that the end of the run cut without a byte of an answer. Where the endpoint
    had answered this agent before, it is a model that thinks, and no failure.
    """
    answered = any(line.result is CallResult.OK for line in lines)
    failed: list[LedgerLine] = []
    waiting: LedgerLine | None = None
    for line in reversed(lines):
        if line.result is CallResult.CUT and _end_s(line) >= ended_s - CUT_S:
            # Our own freeze cut it.
            if line.status is None:
                waiting = line
        elif _provider_cause(line, answered) is None:
            break
        else:
            failed.insert(0, line)
    if waiting and answered and waiting.forwarded:
        waiting = None
    return failed, waiting


def _provider_cause(line: LedgerLine, answered: bool) -> Cause | None:
    """The cause that a failed request is; None: it is not the provider's.

    Args:
        line: of the request.
        answered: whether the endpoint ever answered this agent. Before it did, the model had said
            nothing: what was refused as wrong was ours to ask, such as for a model that the
            provider does not have.
    """
    if line.result is CallResult.CLIENT_ERROR and not answered:
        return Cause.PROVIDER_MALFORMED
    if line.result is CallResult.CUT and line.status is None:
        # The agent waited as long as it does and had no word: from the provider, or because the
        # provider lets us ask no more at once.
        return Cause.PROVIDER_UNREACHABLE if line.forwarded else Cause.RATE_LIMITED
    return PROVIDER_CAUSES.get(line.result)
