from __future__ import annotations

from workers.contract.outcome import (
    BLAME_OF,
    RULES,
    Blame,
    Cause,
    Outcome,
    Phase,
    Retry,
    Verdict,
    outcome_of,
)


def test_every_cause_has_one_blame_and_every_blame_a_cause_and_a_rule() -> None:
    assert set(BLAME_OF) == set(Cause)
    assert set(BLAME_OF.values()) == set(Blame) == set(RULES)


def test_only_the_model_fails_and_only_a_pass_has_no_blame() -> None:
    for cause in Cause:
        outcome = outcome_of(cause, Phase.SEAL)
        assert (outcome.verdict is Verdict.PASS) == (cause is Cause.NONE)
        assert (outcome.verdict is Verdict.FAIL) == (outcome.blame is Blame.MODEL)


def test_what_counts_is_never_tried_again() -> None:
    for rule in RULES.values():
        assert (rule.retry is Retry.NEVER) == (rule.verdict is not Verdict.INVALID)


def test_an_outcome_survives_its_stored_form() -> None:
    outcome = outcome_of(Cause.NO_REPLY, Phase.VERIFY, "nothing was said", ("evidence.json",))
    assert Outcome.from_json(outcome.to_json(), "o") == outcome
