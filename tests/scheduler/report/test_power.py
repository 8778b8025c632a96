from __future__ import annotations

import math

import pytest

from scheduler.report.power import (
    CHANGE,
    assumed_spread,
    minimum_detectable,
    spread_between,
    spread_from_one_side,
)


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_cohens_effects_need_the_pairs_that_tables_have(effect: float, pairs: int) -> None:
    # Cohen 1988 and G*Power: two-sided 5 %, power 80 %, difference of two dependent means.
    with_enough, with_one_less = minimum_detectable(pairs, 1.0), minimum_detectable(pairs - 1, 1.0)
    assert with_enough is not None
    assert with_one_less is not None
    assert with_enough <= effect < with_one_less


def test_many_tasks_come_to_the_normal_rule() -> None:
    found = minimum_detectable(5000, 0.3)
    assert found == pytest.approx((1.959964 + 0.841621) * 0.3 / math.sqrt(5000), rel=1e-3)


def test_one_task_detects_nothing() -> None:
    assert minimum_detectable(1, 0.3) is None
    assert minimum_detectable(0, 0.3) is None


def test_two_tasks_detect_hardly_anything() -> None:
    # By a simulation of 40,000,000 pairs of differences.
    assert minimum_detectable(2, 0.3) == pytest.approx(11.55 * 0.3, rel=2e-3)


def test_more_attempts_leave_only_what_the_change_does() -> None:
    assert assumed_spread(1) > assumed_spread(5) > assumed_spread(100) > CHANGE
    # A flat distribution of tasks' rates has a mean p(1 − p) of 1/6.
    assert assumed_spread(3) == pytest.approx(math.sqrt(0.01 + 2 / 6 / 3))


def test_the_spread_seen_is_the_standard_deviation() -> None:
    assert spread_between([0.0, 0.5, 1.0]) == pytest.approx(0.5)
    assert spread_between([0.3]) is None


def test_one_side_tells_the_chance_of_both() -> None:
    # 1/4 and 2/4 have unbiased p(1 − p) of 3/12 and 4/12.
    assert spread_from_one_side([(1, 4), (2, 4)]) == pytest.approx(math.sqrt(0.01 + 2 * 7 / 24 / 4))
    assert spread_from_one_side([(1, 1), (0, 1)]) is None
    assert spread_from_one_side([]) is None
