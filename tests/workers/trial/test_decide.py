"""From facts to outcomes: each cause, and the order among them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.trial.builders import TASK_EVENT, USER, evidence, message
from workers.container.interface import ExitState
from workers.contract.evidence import Evidence
from workers.contract.outcome import Blame, Cause, ProviderFailure, Verdict
from workers.gateway import CallResult, LedgerLine
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.trial.decide import (
    after_verification,
    before_verification,
    killed_for_the_node,
)
from workers.trial.handoff import Collected, Driven, Ending, Frozen, Unverified, Verified

PASSED = Verified(reward=1.0, dimensions={})
FAILED = Verified(reward=0.0, dimensions={"everything": 1.0})
LOST = Cause.CONTAINER_LOST
KILLED = ExitState(137, False)
SILENT = evidence(message(TASK_EVENT, USER))


def driven(ending: Ending = Ending.TURN_ENDED, seconds: float = 10.0) -> Driven:
    return Driven(
        task_event=Event.sign(Keypair.generate(), 9, (), "task", 1_800_000_000),
        scripted=(),
        ending=ending,
        detail="detail",
        completion_message_id=None,
        started_s=1.0,
        seconds=seconds,
        silences=(),
    )


def frozen(
    oom_events: int = 0,
    *,
    exit_state: ExitState = KILLED,
    limit_reached: bool = True,
    **exits: int | None,
) -> Frozen:
    return Frozen(exit_state, oom_events, agent_exits=exits, limit_reached=limit_reached)


def line(
    number: int,
    result: CallResult,
    started_s: float = 1.0,
    seconds: float = 1.0,
    *,
    agent: str = "solo-1",
    forwarded: bool = True,
) -> LedgerLine:
    values: dict[str, Any] = dict.fromkeys(LedgerLine.model_fields)
    values.update(
        request=number,
        agent=agent,
        waited_s=0.0 if forwarded else seconds,
        held_s=0.0 if forwarded else seconds,
        forwarded=forwarded,
        endpoint="e",
        started_s=started_s,
        seconds=seconds,
        result=result,
        streamed=False,
    )
    return LedgerLine.model_validate(values)


def collected(*ledger: LedgerLine, record: Evidence | None = None, unsound: str = "") -> Collected:
    return Collected(
        evidence=record or evidence(), evidence_digest="d", ledger=ledger, unsound=unsound
    )


@pytest.mark.parametrize(
    ("ending", "ice", "cause"),
    [
        (Ending.CONTAINER_ENDED, frozen(), Cause.CONTAINER_LOST),
        (Ending.CONTAINER_ENDED, frozen(solo=1), Cause.AGENT_DIED),
        (Ending.CONTAINER_ENDED, frozen(1), Cause.AGENT_OOM),
        (Ending.AGENT_EXITED, frozen(solo=0), Cause.AGENT_DIED),
        (Ending.AGENT_EXITED, frozen(1, solo=137), Cause.AGENT_OOM),
        # A child had no memory, and the end came later in another way.
        (Ending.AGENT_EXITED, frozen(1, solo=1), Cause.AGENT_DIED),
        (Ending.AGENT_EXITED, frozen(1, solo=143), Cause.AGENT_DIED),
        (Ending.CONTAINER_ENDED, frozen(1, exit_state=ExitState(137, True, True)), LOST),
        (Ending.CONTAINER_ENDED, frozen(1, exit_state=ExitState(124, True)), LOST),
        # Its own limit was never reached: the node's was.
        (Ending.AGENT_EXITED, frozen(1, limit_reached=False, solo=137), Cause.NODE_OOM),
        (Ending.CONTAINER_ENDED, frozen(1, limit_reached=False), Cause.NODE_OOM),
    ],
)
def test_a_death_is_judged_by_its_counters(ending: Ending, ice: Frozen, cause: Cause) -> None:
    outcome = before_verification(driven(ending), ice, collected(), "solo-1")
    assert outcome is not None
    assert outcome.cause is cause


def test_a_handled_oom_of_a_child_is_no_cause() -> None:
    assert before_verification(driven(), frozen(3), collected(), "solo-1") is None


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (CallResult.RATE_LIMITED, Cause.RATE_LIMITED),
        (CallResult.PROVIDER_5XX, Cause.PROVIDER_5XX),
        (CallResult.PROVIDER_AUTH, Cause.PROVIDER_AUTH),
        (CallResult.PROVIDER_UNREACHABLE, Cause.PROVIDER_UNREACHABLE),
        (CallResult.PROVIDER_MALFORMED, Cause.PROVIDER_MALFORMED),
    ],
)
def test_a_provider_that_fails_to_the_end_is_to_blame(result: CallResult, cause: Cause) -> None:
    ledger = (line(1, CallResult.OK), line(2, result, 5.0, 1.0))
    outcome = before_verification(
        driven(Ending.TURN_FAILED), frozen(), collected(*ledger), "solo-1"
    )
    assert outcome is not None
    assert outcome.cause is cause
    assert outcome.verdict is Verdict.INVALID
    assert outcome.blame is Blame.PROVIDER


@pytest.mark.parametrize(
    ("seconds", "failures", "invalid"),
    [
        # (started, seconds) of the failures; the drive starts at 1 s of the ledger's clock.
        (100.0, [(80.0, 1.0)], True),  # the run ended within 30 s of it
        (100.0, [(10.0, 1.0)], False),  # long ago, and a small share
        (100.0, [(10.0, 1.0), (60.0, 5.0)], True),  # 55 s of 100 s
        (100.0, [(10.0, 1.0), (50.0, 5.0)], False),  # 45 s of 100 s
    ],
)
def test_the_provider_rule_has_two_ways(
    seconds: float, failures: list[tuple[float, float]], invalid: bool
) -> None:
    ledger = [line(n, CallResult.PROVIDER_5XX, *times) for n, times in enumerate(failures, 1)]
    outcome = before_verification(
        driven(Ending.TIMEOUT, seconds), frozen(), collected(*ledger), "solo-1"
    )
    assert (outcome is not None) is invalid


def test_a_success_after_failures_clears_the_provider() -> None:
    ledger = (line(1, CallResult.PROVIDER_5XX, 9.0), line(2, CallResult.OK, 10.0))
    assert before_verification(driven(), frozen(), collected(*ledger), "solo-1") is None


def test_a_provider_that_never_answers_is_to_blame() -> None:
    ledger = (line(1, CallResult.CUT, 2.0, 240.0), line(2, CallResult.CUT, 243.0, 58.0))
    outcome = before_verification(
        driven(Ending.TIMEOUT, 300.0), frozen(), collected(*ledger), "solo-1"
    )
    assert outcome is not None
    assert outcome.cause is Cause.PROVIDER_UNREACHABLE


def test_a_model_that_thinks_into_the_deadline_is_slow_and_not_down() -> None:
    ledger = (line(1, CallResult.OK, 1.0, 1.0), line(2, CallResult.CUT, 3.0, 298.0))
    assert (
        before_verification(driven(Ending.TIMEOUT, 300.0), frozen(), collected(*ledger), "solo-1")
        is None
    )


@pytest.mark.parametrize(("started_s", "cause"), [(2.0, Cause.PROVIDER_UNREACHABLE), (200.0, None)])
def test_a_first_request_without_a_word_counts_by_how_long_it_was_waited_for(
    started_s: float, cause: Cause | None
) -> None:
    ledger = (line(1, CallResult.CUT, started_s, 302.0 - started_s),)
    outcome = before_verification(
        driven(Ending.TIMEOUT, 300.0), frozen(), collected(*ledger), "solo-1"
    )
    assert (outcome and outcome.cause) is cause


@pytest.mark.parametrize(
    ("first", "cause"),
    [(CallResult.OK, None), (CallResult.CLIENT_ERROR, Cause.PROVIDER_MALFORMED)],
)
def test_what_is_refused_before_the_first_answer_is_not_the_models(
    first: CallResult, cause: Cause | None
) -> None:
    ledger = (line(1, first, 1.0), line(2, CallResult.CLIENT_ERROR, 5.0))
    outcome = before_verification(
        driven(Ending.TURN_FAILED), frozen(), collected(*ledger), "solo-1"
    )
    assert (outcome and outcome.cause) is cause


@pytest.mark.parametrize("ended_s", [302.0, 250.0])
def test_a_request_that_was_never_let_go_is_no_model_that_thinks(ended_s: float) -> None:
    seconds = ended_s - 2.0
    ledger = (
        line(1, CallResult.OK, 1.0, 0.5),
        line(2, CallResult.CUT, 2.0, seconds, forwarded=False),
    )
    outcome = before_verification(
        driven(Ending.TIMEOUT, 300.0), frozen(), collected(*ledger), "solo-1"
    )
    assert outcome is not None
    assert outcome.cause is Cause.RATE_LIMITED


def test_the_figures_of_a_provider_stand_in_fields() -> None:
    ledger = (line(1, CallResult.OK, 1.0), line(2, CallResult.PROVIDER_5XX, 5.0, 2.0))
    outcome = before_verification(driven(), frozen(), collected(*ledger), "solo-1")
    assert outcome is not None
    assert outcome.provider == ProviderFailure(
        endpoint="e", failures=1, last_status=None, since_last_s=4.0, share=0.2
    )


@pytest.mark.parametrize(
    ("ending", "cause"),
    [(Ending.TIMEOUT, Cause.PROVIDER_5XX), (Ending.DONE, None)],
)
def test_a_teammates_provider_counts_where_the_orchestrator_came_to_no_end(
    ending: Ending, cause: Cause | None
) -> None:
    ledger = (
        line(1, CallResult.OK, 2.0, agent="lead-1"),
        line(2, CallResult.PROVIDER_5XX, 3.0, agent="helper-1"),
        line(3, CallResult.OK, 9.0, agent="lead-1"),
    )
    outcome = before_verification(driven(ending), frozen(), collected(*ledger), "lead-1")
    assert (outcome and outcome.cause) is cause


def test_requests_without_a_token_of_the_trial_clear_no_provider() -> None:
    stranger = line(2, CallResult.REFUSED_TOKEN, 10.0).model_copy(update={"agent": None})
    ledger = (line(1, CallResult.PROVIDER_5XX, 9.0), stranger)
    outcome = before_verification(driven(), frozen(), collected(*ledger), "solo-1")
    assert outcome is not None
    assert outcome.cause is Cause.PROVIDER_5XX


def test_what_our_freeze_cut_says_nothing_of_the_provider() -> None:
    ledger = (line(1, CallResult.RATE_LIMITED, 9.0), line(2, CallResult.CUT, 10.0))
    outcome = before_verification(driven(), frozen(), collected(*ledger), "solo-1")
    assert outcome is not None
    assert outcome.cause is Cause.RATE_LIMITED


def test_unsound_evidence_is_the_harness() -> None:
    outcome = before_verification(driven(), frozen(), collected(unsound="a fault"), "solo-1")
    assert outcome is not None
    assert (outcome.cause, outcome.blame) == (Cause.EVIDENCE_UNSOUND, Blame.HARNESS)


def test_a_pass_has_no_blame_and_no_cause() -> None:
    outcome = after_verification(driven(), collected(), PASSED)
    assert (outcome.verdict, outcome.blame, outcome.cause) == (
        Verdict.PASS,
        Blame.NONE,
        Cause.NONE,
    )


@pytest.mark.parametrize("verified", [PASSED, FAILED])
def test_a_deadline_is_a_fail_whatever_the_reward(verified: Verified) -> None:
    outcome = after_verification(driven(Ending.TIMEOUT), collected(), verified)
    assert (outcome.verdict, outcome.cause) == (Verdict.FAIL, Cause.AGENT_TIMEOUT)


def test_a_verifier_without_a_word_is_the_task() -> None:
    silent = Unverified(Cause.REWARD_MISSING, "nothing")
    outcome = after_verification(driven(), collected(), silent)
    assert (outcome.verdict, outcome.blame) == (Verdict.INVALID, Blame.TASK)


@pytest.mark.parametrize(
    ("ending", "facts", "cause"),
    [
        (Ending.TURN_ENDED, collected(), Cause.WRONG),
        (Ending.TURN_ENDED, collected(record=SILENT), Cause.NO_REPLY),
        (Ending.STOPPED, collected(record=SILENT), Cause.AGENT_STOPPED),
        (Ending.TURN_FAILED, collected(), Cause.AGENT_STOPPED),
        (Ending.STORAGE_FULL, collected(), Cause.AGENT_STOPPED),
        (
            Ending.TURN_FAILED,
            collected(line(1, CallResult.REFUSED_BUDGET)),
            Cause.BUDGET_EXHAUSTED,
        ),
    ],
)
def test_the_first_cause_of_a_fail_that_holds(
    ending: Ending, facts: Collected, cause: Cause
) -> None:
    outcome = after_verification(driven(ending), facts, FAILED)
    assert (outcome.cause, outcome.blame) == (cause, Blame.MODEL)


@pytest.mark.parametrize(
    ("ending", "verified", "cause"),
    [
        (Ending.TURN_ENDED, PASSED, Cause.NONE),
        (Ending.TURN_ENDED, FAILED, Cause.NODE_OOM),
        (Ending.TIMEOUT, PASSED, Cause.NODE_OOM),
        (Ending.TURN_ENDED, Unverified(Cause.REWARD_MISSING, "none"), Cause.REWARD_MISSING),
    ],
)
def test_a_fail_beside_a_node_without_memory_is_not_the_models(
    ending: Ending, verified: Verified | Unverified, cause: Cause
) -> None:
    ice = frozen(1, limit_reached=False)
    outcome = after_verification(
        driven(ending), collected(), verified, node_oom=killed_for_the_node(ice)
    )
    assert outcome.cause is cause


def test_dimensions_decide_nothing() -> None:
    every = Verified(reward=0.0, dimensions={"evidence_complete": 0.0})
    none = Verified(reward=0.0, dimensions={})
    assert after_verification(driven(), collected(), every) == after_verification(
        driven(), collected(), none
    )
