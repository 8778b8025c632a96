from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.score import rates, score
from scheduler.report.summary import ConditionScore, Summary
from tests.scheduler.report.builders import attempt, cell, results, sweep_of

ATTEMPTS = st.lists(
    st.sampled_from(["p", "f", "ip", "iif", "iii", "r", ""]), min_size=1, max_size=9
)


def test_an_invalid_attempt_is_no_zero_but_lowers_the_coverage() -> None:
    counts = rates([attempt("p", 0), attempt("p", 1), attempt("f", 2), attempt("iii", 3)])
    assert (counts.passed, counts.failed, counts.invalid) == (2, 1, 1)
    assert counts.valid_only == pytest.approx(2 / 3)
    assert counts.strict == counts.low == 0.5
    assert counts.high == 0.75
    assert counts.coverage == 0.75
    assert (counts.tries, counts.invalid_tries) == (6, 3)


@pytest.mark.parametrize("tries", ["", "c", "i", "ic", "ccc"])
def test_an_attempt_that_resume_goes_on_with_is_open_and_missing_like_an_invalid_one(
    tries: str,
) -> None:
    counts = rates([attempt("p"), attempt(tries)])
    assert (counts.invalid, counts.open) == (0, 1)
    assert (counts.tries, counts.coverage, counts.strict) == (1 + len(tries), 0.5, 0.5)


@pytest.mark.parametrize("tries", ["iii", "irr", "iiic"])
def test_an_attempt_whose_tries_are_spent_is_invalid(tries: str) -> None:
    counts = rates([attempt("p"), attempt(tries)])
    assert (counts.invalid, counts.open) == (1, 0)


def test_without_a_valid_attempt_there_is_no_valid_only_rate() -> None:
    assert rates([attempt("i")]).valid_only is None


@given(ATTEMPTS)
def test_the_bounds_hold_every_other_rate(tries: list[str]) -> None:
    counts = rates([attempt(each, index) for index, each in enumerate(tries)])
    assert (
        sum((counts.passed, counts.failed, counts.invalid, counts.open))
        == counts.planned
        == len(tries)
    )
    assert 0.0 <= counts.low <= counts.strict <= counts.high <= 1.0
    if counts.valid_only is not None:
        assert counts.low <= counts.valid_only <= counts.high
    if counts.invalid == counts.open == 0:
        assert counts.low == counts.high == counts.strict == counts.valid_only
        assert counts.coverage == 1.0


def test_a_condition_is_the_mean_of_its_tasks_and_not_of_its_attempts() -> None:
    workflow = _only(score(sweep_of({"a": "p p p p", "b": "f"}))).workflow
    assert workflow is not None
    assert workflow.valid_only == workflow.strict == 0.5
    assert workflow.interval is not None
    assert workflow.interval.method == "clustered"


def test_regression_tasks_enter_no_average() -> None:
    summary = score(results(cell("p p", layer="regression"), cell("f f", task="b")))
    condition = _only(summary)
    assert condition.workflow is not None
    assert condition.workflow.tasks == 1
    assert condition.workflow.strict == 0.0
    assert _only(score(results(cell("p", layer="regression")))).workflow is None


def test_below_the_gate_there_is_no_headline() -> None:
    summary = score(sweep_of({"a": "p p p p p p p p iii iii"}))
    assert not summary.conclusive
    assert _only(summary).withheld == "coverage 80.0% is below the gate 90.0%"


def test_at_the_gate_there_is_one() -> None:
    assert score(sweep_of({"a": "p p p p p p p p p iii"})).conclusive
    assert score(sweep_of({"a": "p iii"}, gate=0.5)).conclusive


def test_a_task_without_any_valid_attempt_withholds_the_headline_at_any_coverage() -> None:
    summary = score(sweep_of({"a": "p p p p p p p p p p p", "b": "iii"}))
    assert _only(summary).rates.coverage > 0.9
    assert _only(summary).withheld == "task buzz-native/b has no valid attempt"


@pytest.mark.parametrize(("rule", "figure"), [("strict", 0.5), ("valid_only", 1.0)])
def test_the_rule_of_the_lock_chooses_the_headline_and_its_interval(
    rule: str, figure: float
) -> None:
    workflow = _only(score(sweep_of({"a": "p i"}, rule=rule))).workflow
    assert workflow is not None
    assert workflow.figure(rule) == figure
    assert workflow.interval is not None
    assert workflow.interval.low <= figure <= workflow.interval.high


def test_every_k_that_the_data_carry_has_a_row_with_the_tasks_that_carry_it() -> None:
    workflow = _only(score(sweep_of({"a": "p f p", "b": "f"}))).workflow
    assert workflow is not None
    assert [(row.k, row.tasks) for row in workflow.k] == [(1, 2), (2, 1), (3, 1)]
    assert workflow.k[0].pass_at == pytest.approx((2 / 3 + 0) / 2)
    assert workflow.k[1].pass_at == 1.0
    assert workflow.k[1].pass_all == pytest.approx(1 / 3)
    assert workflow.k[2].pass_all == 0.0


def test_causes_count_tries_and_name_an_attempt_that_shows_them() -> None:
    summary = score(results(cell("ip iif f", task="a"), cell("rrp", task="b")))
    rows = [(row.task, row.blame, row.cause, row.tries) for row in summary.causes]
    assert rows == [
        ("buzz-native/a", "harness", "container_lost", 3),
        ("buzz-native/a", "model", "wrong", 2),
        ("buzz-native/b", "provider", "rate_limited", 2),
    ]
    assert summary.causes[0].example == attempt("", 0, home="solver/a").attempt


def test_a_cell_says_which_dimensions_it_lost_and_how_often() -> None:
    lost = score(results(cell("f f", dimensions={"answer": 1.0, "reply": 0.0}))).cells[0]
    assert lost.lost_dimensions == {"reply": 2}
    assert lost.mean_reward == 0.0


def test_what_was_spent_counts_the_tries_that_do_not_count() -> None:
    usage = {"calls": 2, "cost_usd": 0.25, "unknown_cost_calls": 1}
    spent = _only(score(results(cell("ip", usage=usage)))).spent
    assert (spent.calls, spent.cost_usd, spent.unknown_cost_calls) == (4, 0.5, 2)


def test_attempts_that_were_not_tried_are_told_before_the_figures() -> None:
    assert score(sweep_of({"a": "p - -"})).notes == ("2 of 3 attempts have not been tried yet",)
    assert score(sweep_of({"a": "p"})).notes == ()


@given(st.lists(ATTEMPTS, min_size=1, max_size=4))
def test_a_summary_survives_its_json(cells: list[list[str]]) -> None:
    made = [
        cell(" ".join(tries or "-" for tries in each), task=f"t{place}")
        for place, each in enumerate(cells)
    ]
    summary = score(results(*made))
    assert Summary.from_json(summary.to_json(), "summary") == summary


def _only(summary: Summary) -> ConditionScore:
    assert len(summary.conditions) == 1
    return summary.conditions[0]
