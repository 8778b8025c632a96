from __future__ import annotations

import pytest

from scheduler.manifest import Scoring
from scheduler.report.comparison import compare
from scheduler.report.comparison_format import Comparison, PairScore
from scheduler.report.sides import NotComparableError, Side, find_condition
from tests.scheduler.report.generated import make_lock
from tests.scheduler.report.sides import NOW_START, arranged, side

UP = {"a": "p p f f", "b": "p f f f", "c": "p p p p"}
DOWN = {"a": "p f f f", "b": "f f f f", "c": "p p p p"}


def only(found: Comparison) -> PairScore:
    (pair,) = found.pairs
    return pair


def test_workflow_is_paired_by_task() -> None:
    pair = only(compare(side(workflow=UP), side(workflow=DOWN, started_at=NOW_START)))
    workflow = pair.workflow
    assert workflow is not None
    assert (workflow.tasks, workflow.figure_a) == (3, pytest.approx(1.75 / 3))
    assert workflow.difference == pytest.approx(-0.5 / 3)
    assert workflow.p == 0.5
    assert workflow.test == "exact"
    assert workflow.interval is not None
    assert workflow.interval.low < -0.5 / 3 < workflow.interval.high
    assert workflow.low == workflow.high == pytest.approx(-0.5 / 3)
    assert [task.task for task in pair.moved] == ["buzz-native/a", "buzz-native/b"]


def test_regression_tasks_are_tested_one_by_one_and_enter_no_average() -> None:
    a = side(regression={"kept": "p p p", "lost": "p p p p p"})
    b = side(regression={"kept": "p p p", "lost": "f f f f f"}, started_at=NOW_START)
    found = compare(a, b)
    assert only(found).workflow is None
    assert [(each.p, each.p_holm) for each in only(found).tasks] == [
        (1.0, 1.0),
        (pytest.approx(2 / 252), pytest.approx(4 / 252)),
    ]
    assert found.tests == 2


def test_holm_goes_over_all_conditions() -> None:
    lock = make_lock(conditions=3, regression=0, workflow=2, attempts=2)
    words = {"task-00": "p f", "task-01": "p p"}
    now = make_lock(conditions=3, regression=0, workflow=2, attempts=2, started_at=NOW_START)
    found = compare(arranged(lock, words), arranged(now, {"task-00": "f f", "task-01": "p f"}))
    assert found.tests == 3
    assert len(found.pairs) == 3
    assert {pair.workflow and pair.workflow.p for pair in found.pairs} == {0.5}
    assert {pair.workflow and pair.workflow.p_holm for pair in found.pairs} == {1.0}


def test_attempts_lost_are_told_on_each_side_with_their_causes() -> None:
    a = side(workflow={"a": "p p p iii", "b": "p p p p p p p p p p p"})
    b = side(workflow={"a": "p p f -", "b": "p p p p p p p p p p rrr"}, started_at=NOW_START)
    pair = only(compare(a, b))
    assert (pair.lost_a.invalid, pair.lost_a.open) == (1, 0)
    assert pair.lost_a.causes == {"harness: container_lost": 1}
    assert (pair.lost_b.invalid, pair.lost_b.open) == (1, 1)
    assert pair.lost_b.causes == {"provider: rate_limited": 1}
    workflow = pair.workflow
    assert workflow is not None
    assert workflow.low < workflow.high
    stands = [mark.stands for mark in pair.tasks[0].b.attempts]
    assert stands == ["pass", "pass", "fail", "open"]


def test_below_the_gate_of_either_side_there_are_only_bounds() -> None:
    full, poor = {"a": "p p p p"}, {"a": "p p iii iii"}
    for a, b in ((full, poor), (poor, full)):
        pair = only(compare(side(workflow=a), side(workflow=b, started_at=NOW_START)))
        workflow = pair.workflow
        assert workflow is not None
        assert workflow.figure_a is workflow.figure_b is workflow.difference is None
        assert workflow.interval is workflow.p is None
        assert (workflow.low, workflow.high) in [(-0.5, 0.0), (0.0, 0.5)]
        assert bool(pair.withheld_a) is not bool(pair.withheld_b)


def test_all_invalid_on_both_sides_compares_nothing_and_does_not_break() -> None:
    pair = only(
        compare(
            side({"r": "iii iii"}, {"w": "iii"}),
            side({"r": "iii -"}, {"w": "iii"}, started_at=NOW_START),
        )
    )
    assert pair.workflow is not None
    assert (pair.workflow.low, pair.workflow.high) == (-1.0, 1.0)
    assert [task.p for task in pair.tasks] == [None, None]
    assert [task.difference for task in pair.tasks] == [None, None]
    assert pair.moved == ()


def test_valid_only_leaves_out_what_is_missing() -> None:
    scoring = Scoring(rule="valid_only", coverage_gate=0.5)
    a = side(workflow={"a": "p p", "b": "p p p iii"}, scoring=scoring)
    b = side(workflow={"a": "p p", "b": "p f p f"}, scoring=scoring, started_at=NOW_START)
    workflow = only(compare(a, b)).workflow
    assert workflow is not None
    assert (workflow.figure_a, workflow.figure_b) == (1.0, 0.75)


def test_attempts_may_differ_between_tasks_and_sides() -> None:
    a = side(workflow={"a": "p", "b": "p f p"})
    b = side(workflow={"a": "p p p p f", "b": "f f"}, started_at=NOW_START)
    workflow = only(compare(a, b)).workflow
    assert workflow is not None
    assert workflow.difference == pytest.approx((-1 / 5 - 2 / 3) / 2)


def test_what_differs_besides_the_conditions_is_said() -> None:
    a = side(workflow=UP)
    b = side(
        workflow={**DOWN, "d": "p -"}, started_at=NOW_START, changed=("b",), network="declared"
    )
    found = compare(a, b)
    text = "\n".join(found.warnings)
    assert "the sweeps differ in network: sealed and declared" in text
    assert "not compared, changed between the sweeps (another digest): b" in text
    assert f"not compared, only in {b.sweep} under condition-0: d" in text
    assert f"{b.sweep} is not settled: 1 attempt open" in text
    assert [task.task for task in only(found).tasks] == ["buzz-native/a", "buzz-native/c"]


def test_conditions_are_matched_by_digest_then_by_name_or_as_they_are_named() -> None:
    a, b = side(workflow=UP), side(workflow=DOWN, condition="other", started_at=NOW_START)
    with pytest.raises(NotComparableError, match="no condition is in both sweeps"):
        compare(a, b)
    pair = only(compare(a, b, "condition-0", "other"))
    assert (pair.condition_a, pair.condition_b) == ("condition-0", "other")
    with pytest.raises(NotComparableError, match="has no condition 'nosuch'; it has other"):
        compare(a, b, "condition-0", "nosuch")
    assert find_condition(b, next(iter(b.conditions))[:8]) == next(iter(b.conditions))


def test_two_conditions_of_one_sweep() -> None:
    lock = make_lock(conditions=2, regression=0, workflow=1, attempts=2)
    one = arranged(lock, {"task-00": "p f"})
    pair = only(compare(one, one, "condition-0", "condition-1"))
    assert (pair.condition_a, pair.condition_b) == ("condition-0", "condition-1")
    with pytest.raises(NotComparableError, match="compared with itself"):
        compare(one, one, "condition-1", "condition-1")


@pytest.mark.parametrize(
    ("b", "message"),
    [
        (side(workflow={"other": "p"}, started_at=NOW_START), "share no task"),
        (
            side(workflow=UP, changed=("a", "b", "c"), started_at=NOW_START),
            "3 of the same name have other digests",
        ),
        (
            side(workflow=UP, scoring=Scoring(rule="valid_only"), started_at=NOW_START),
            "the rules differ",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(b: Side, message: str) -> None:
    with pytest.raises(NotComparableError, match=message):
        compare(side(workflow=UP), b)


def test_canaries_are_not_compared() -> None:
    lock = make_lock(conditions=1, regression=0, workflow=1, attempts=2, canaries=True)
    now = make_lock(
        conditions=1, regression=0, workflow=1, attempts=2, canaries=True, started_at=NOW_START
    )
    found = compare(arranged(lock, {"task-00": "p f"}), arranged(now, {"task-00": "p f"}))
    assert [pair.condition_a for pair in found.pairs] == ["condition-0"]


def test_a_comparison_survives_its_json() -> None:
    found = compare(side(workflow=UP), side(workflow=DOWN, started_at=NOW_START))
    assert Comparison.from_json(found.to_json(), "comparison") == found
