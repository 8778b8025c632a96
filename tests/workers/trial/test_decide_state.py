"""Outcomes of tasks graded by their container's state: the reward decides, nobody must reply."""

from __future__ import annotations

import pytest

from tests.workers.trial.test_decide import (
    FAILED,
    PASSED,
    SILENT,
    collected,
    driven,
    line,
)
from workers.contract.outcome import Cause
from workers.gateway import CallResult
from workers.trial.decide import after_verification
from workers.trial.handoff import Ending, Unverified


@pytest.mark.parametrize("ending", [Ending.TURN_ENDED, Ending.TIMEOUT, Ending.STOPPED])
def test_a_reward_counts_however_the_drive_ended(ending: Ending) -> None:
    outcome = after_verification(driven(ending), collected(record=SILENT), PASSED, by_state=True)
    assert outcome.cause is Cause.NONE


@pytest.mark.parametrize(
    ("ending", "cause"),
    [
        (Ending.TURN_ENDED, Cause.WRONG),
        (Ending.TIMEOUT, Cause.AGENT_TIMEOUT),
        (Ending.STOPPED, Cause.AGENT_STOPPED),
        (Ending.TURN_FAILED, Cause.AGENT_STOPPED),
    ],
)
def test_without_a_reward_the_ending_says_why(ending: Ending, cause: Cause) -> None:
    outcome = after_verification(driven(ending), collected(record=SILENT), FAILED, by_state=True)
    assert outcome.cause is cause


def test_a_spent_budget_comes_before_the_deadline() -> None:
    spent = collected(line(1, CallResult.REFUSED_BUDGET), record=SILENT)
    outcome = after_verification(driven(Ending.TIMEOUT), spent, FAILED, by_state=True)
    assert outcome.cause is Cause.BUDGET_EXHAUSTED


def test_a_verifier_without_a_word_is_the_tasks() -> None:
    unverified = Unverified(Cause.REWARD_MISSING, "none")
    outcome = after_verification(driven(), collected(record=SILENT), unverified, by_state=True)
    assert outcome.cause is Cause.REWARD_MISSING
