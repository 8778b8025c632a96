from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.rates import rates
from scheduler.report.score import score
from scheduler.report.summary import ConditionScore, Summary
from tests.scheduler.report.builders import attempt, cell, results, sweep_of
from workers.contract.result import TokenDifference

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
    condition = _only(score(sweep_of({"a": "p i"}, rule=rule, gate=0.5)))
    workflow = condition.workflow
    assert workflow is not None
    assert condition.figure == figure
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


def test_below_the_gate_there_is_no_figure_nor_interval_nor_pass_at_k() -> None:
    condition = _only(score(sweep_of({"a": "p p p p p p p p iii iii"})))
    workflow = condition.workflow
    assert workflow is not None
    assert (condition.figure, workflow.interval, workflow.k) == (None, None, ())
    assert (workflow.low, workflow.high) == (0.8, 1.0)
    assert workflow.outer.low < 0.8
    assert workflow.outer.high == 1.0


def test_regression_attempts_do_not_cover_for_workflow_tasks() -> None:
    kept = cell(" ".join(["p"] * 40), layer="regression", task="threads")
    summary = score(results(kept, cell("p p iii", task="greet")))
    assert _only(summary).rates.coverage > 0.9
    assert _only(summary).withheld == (
        "coverage of the workflow tasks 66.7% is below the gate 90.0%"
    )


def test_a_sweep_without_cells_is_not_conclusive() -> None:
    summary = score(results())
    assert not summary.conclusive
    assert summary.notes == ("the sweep plans no attempt",)
    assert score(results(replace(cell("p"), attempts=()))).conditions == ()


def test_canaries_are_reported_apart_and_count_in_no_score() -> None:
    solver = replace(cell("p ip iii f", condition="canary-solver"), canary="solver")
    nop = replace(cell("f f p cf", condition="canary-nop"), canary="nop")
    summary = score(results(cell("p p"), solver, nop))
    assert [each.condition for each in summary.conditions] == ["solver"]
    assert [each.condition for each in summary.cells] == ["solver"]
    assert {each.condition for each in summary.canary_cells} == {"canary-solver", "canary-nop"}
    rows = {row.kind: row for row in summary.canaries}
    assert list(rows) == ["nop", "solver", "all"]
    assert (rows["solver"].error_tries, rows["solver"].judged_tries) == (4, 7)
    assert (rows["solver"].unexpected, rows["solver"].noise_floor) == (1, pytest.approx(1 / 3))
    # What the operator stopped says nothing of the infrastructure.
    assert (rows["nop"].error_tries, rows["nop"].judged_tries) == (0, 4)
    assert (rows["nop"].unexpected, rows["nop"].noise_floor) == (1, 0.25)
    assert rows["all"].error_rate == pytest.approx(4 / 11)
    # A fail is what nop must come to: it is no cause of anything.
    assert {(row.condition, row.cause) for row in summary.causes} == {
        ("canary-solver", "container_lost"),
        ("canary-solver", "wrong"),
        ("canary-nop", "none"),
        ("canary-nop", "cancelled"),
    }


def test_canaries_that_never_came_to_a_verdict_have_no_noise_floor() -> None:
    row = score(results(cell("p"), replace(cell("- -"), canary="nop"))).canaries[0]
    assert row.error_rate is row.noise_floor is row.noise_interval is None


def test_the_mean_reward_is_over_tasks_first() -> None:
    graded = cell("f f", task="a", reward=0.5)
    workflow = _only(score(results(graded, cell("p", task="b")))).workflow
    assert workflow is not None
    assert workflow.mean_reward == 0.75


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


def test_tries_whose_logs_count_other_tokens_are_told_of() -> None:
    unlike = (TokenDifference(agent="solo-1", only_in_log=1),)
    (note,) = score(results(cell("p f", token_differences=unlike))).notes
    assert note.startswith("in 2 of 2 tries an agent's log counts other tokens than the ledger")


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
