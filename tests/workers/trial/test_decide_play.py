"""What a try without a model came to."""

from __future__ import annotations

import pytest

from workers.contract.outcome import Blame, Cause, Verdict
from workers.trial.decide import after_play
from workers.trial.handoff import Ending, Frozen, PlayedOut, Unverified, Verified


def outcome(
    reward: float,
    ending: Ending = Ending.TURN_ENDED,
    code: int | None = 0,
    oom: int = 0,
    own: bool = True,
    threshold: float = 1.0,
) -> tuple[Verdict, Cause]:
    frozen = Frozen(None, oom, {}, limit_reached=own, mode="agent")
    found = after_play(
        PlayedOut(ending, code, "detail"), frozen, Verified(reward=reward, dimensions={}), threshold
    )
    return found.verdict, found.cause


def test_the_reward_decides_however_the_solution_ended() -> None:
    for code in (0, 1, 137, None):
        for ending in (Ending.TURN_ENDED, Ending.TIMEOUT, Ending.STORAGE_FULL):
            assert outcome(1.0, ending, code, oom=1) == (Verdict.PASS, Cause.NONE)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({}, Cause.WRONG),
        ({"code": 3}, Cause.WRONG),
        ({"code": None}, Cause.WRONG),
        ({"code": 137}, Cause.WRONG),
        ({"code": 1, "oom": 2}, Cause.WRONG),
        ({"code": 137, "oom": 1}, Cause.AGENT_OOM),
        ({"code": None, "ending": Ending.TIMEOUT}, Cause.AGENT_TIMEOUT),
        ({"code": None, "ending": Ending.STORAGE_FULL}, Cause.AGENT_STOPPED),
    ],
)
def test_causes_of_a_fail(given: dict[str, object], cause: Cause) -> None:
    assert outcome(0.9, **given) == (Verdict.FAIL, cause)  # type: ignore[arg-type]


def test_memory_that_the_node_did_not_have_says_nothing_of_the_task() -> None:
    assert outcome(0.0, code=137, oom=1, own=False) == (Verdict.INVALID, Cause.NODE_OOM)


def test_the_locks_threshold_counts() -> None:
    assert outcome(0.75, threshold=0.75)[0] is Verdict.PASS
    assert outcome(0.74, threshold=0.75)[0] is Verdict.FAIL


def test_a_verifier_without_a_word_is_the_tasks_fault() -> None:
    frozen = Frozen(None, 0, {}, mode="agent")
    word = Unverified(Cause.REWARD_MISSING, "none")
    found = after_play(PlayedOut(Ending.TURN_ENDED, 0), frozen, word, 1.0)
    assert (found.verdict, found.blame) == (Verdict.INVALID, Blame.TASK)
