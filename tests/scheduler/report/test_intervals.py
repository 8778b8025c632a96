from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.intervals import clustered, pass_all, pass_at, wilson

TASKS = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("passes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_agrees_with_published_values(
    passes: int, trials: int, low: float, high: float
) -> None:
    interval = wilson(passes, trials)
    assert interval.low == pytest.approx(low, abs=1e-4)
    assert interval.high == pytest.approx(high, abs=1e-4)


def test_a_cluster_interval_is_students_t_over_the_tasks_own_rates() -> None:
    interval = clustered([(1, 4), (2, 4), (3, 4)])
    # Mean 0.5, standard error 0.25 / sqrt(3), t with 2 degrees of freedom 4.30265.
    reach = 4.302652729911275 * 0.25 / math.sqrt(3)
    assert interval.method == "clustered"
    assert interval.low == pytest.approx(max(0.0, 0.5 - reach))
    assert interval.high == pytest.approx(min(1.0, 0.5 + reach))


@pytest.mark.parametrize(
    ("tasks", "as_if"),
    [
        ([(2, 5)], (2, 5)),
        ([(1, 1), (0, 1), (1, 1)], (2, 3)),
        ([(3, 3), (3, 3)], (2, 2)),
        ([(0, 3), (0, 5)], (0, 2)),
    ],
)
def test_without_a_spread_over_tasks_it_is_wilsons(
    tasks: list[tuple[int, int]], as_if: tuple[int, int]
) -> None:
    assert clustered(tasks) == wilson(*as_if)


@given(TASKS)
def test_an_interval_is_within_zero_and_one_and_holds_the_mean(
    tasks: list[tuple[int, int]],
) -> None:
    mean = sum(passes / valid for passes, valid in tasks) / len(tasks)
    interval = clustered(tasks)
    assert 0.0 <= interval.low < interval.high <= 1.0
    assert interval.low - 1e-9 <= mean <= interval.high + 1e-9


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts(case: tuple[int, int, int]) -> None:
    valid, passes, k = case
    choices = list(itertools.combinations([True] * passes + [False] * (valid - passes), k))
    assert pass_at(k, passes, valid) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_all(k, passes, valid) == pytest.approx(sum(map(all, choices)) / len(choices))
