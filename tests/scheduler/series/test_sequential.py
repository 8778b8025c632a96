from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.distributions import fewer_passes
from scheduler.series.false_alarms import KINDS, _run, study
from scheduler.series.sequential import (
    Count,
    against,
    limit_of,
    loudest,
    lower_tail,
)

_strata = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 4)).flatmap(
        lambda n: st.tuples(
            st.integers(0, n[0]), st.just(n[0]), st.integers(0, n[1]), st.just(n[1])
        )
    ),
    min_size=1,
    max_size=3,
)


def counted(strata: list[tuple[int, int, int, int]]) -> float:
    """By going through every way in which the passes could have fallen."""
    seen = sum(x for x, *_ in strata)
    ways = []
    for x, n, y, m in strata:
        places = itertools.combinations(range(n + m), x + y)
        ways.append([sum(place < n for place in chosen) for chosen in places])
    sums = [sum(each) for each in itertools.product(*ways)]
    return sum(each <= seen for each in sums) / len(sums)


@given(_strata)
def test_the_p_value_is_that_of_every_way(strata: list[tuple[int, int, int, int]]) -> None:
    p, exact = lower_tail(strata), counted(strata)
    if p < 0.05 or exact < 0.02:
        assert p == pytest.approx(exact)


def test_one_task_is_fishers_test() -> None:
    assert lower_tail([(0, 4, 30, 30)]) == pytest.approx(fewer_passes(0, 4, 30, 30))


def test_what_is_missing_never_helps_to_claim_a_fall() -> None:
    before = [{"a": Count(3, 3)}] * 10
    whole = against([{"a": Count(0, 3)}], before)
    missing = against([{"a": Count(0, 1, 2)}], before)
    gone = against([{"a": Count(0, 0, 3)}], before)
    assert whole is not None and missing is not None and gone is not None
    assert whole.p < missing.p < gone.p == 1.0
    assert (missing.recent, missing.before) == ((0, 1), (30, 30))


def test_a_task_of_one_side_alone_is_left_out() -> None:
    assert against([{"a": Count(0, 3)}], [{"b": Count(3, 3)}]) is None
    assert loudest([{"a": Count(0, 3)}]) is None


def test_the_loudest_window_is_the_one_with_the_fall() -> None:
    good, bad = {"a": Count(3, 3)}, {"a": Count(0, 3)}
    for length in (1, 2, 4):
        found = loudest([good] * 20 + [bad] * length)
        assert found is not None and found.window == length
        assert found.recent == (0, 3 * length)


def test_the_limit_divides_the_year() -> None:
    assert limit_of(0.05, 52, 1) == pytest.approx(-math.log(0.95) / 130, rel=1e-3)
    assert limit_of(0.05, 365, 7) < limit_of(0.05, 52, 7) < limit_of(0.05, 52, 1)


@pytest.mark.long
def test_figures_are_those_of_the_page() -> None:
    """A smaller study; the page's has the same seed and more years."""
    row = study(10, KINDS[2], history=26, count=60, seed=2)
    assert row.alarms / row.years <= 0.12
    assert row.found[2] / row.drops >= 0.8
    assert sorted(row.found) == list(row.found)


def test_a_run_of_the_study_has_its_attempts() -> None:
    run = _run(random.Random(1), [0.0, 1.0], 3)
    assert run == {"0": Count(0, 3), "1": Count(3, 3)}
