from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.intervals import (
    clustered,
    effective_attempts,
    fixed,
    paired,
    pass_over_k,
    wilson,
)

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


def test_a_cluster_interval_by_hand() -> None:
    # Rates 1/4, 1/2, 3/4: mean 1/2, the largest variance 1/4, squares 1/8; half a task of the
    # largest makes the spread (1/8 + 1/8) / 2.5 = 1/10. Three tasks then are worth
    # 3 · (1/4) / (1/10) = 7.5 attempts. Chance in four attempts explains 1/16 of the 1/10, so
    # 0.375 of it is estimated: 2 / 0.375² = 14.22 degrees of freedom, t = 2.14147 (R: qt).
    effective = effective_attempts([(1, 4), (2, 4), (3, 4)])
    assert effective.attempts == pytest.approx(7.5)
    assert effective.freedom == pytest.approx(14.2222, abs=1e-3)
    interval = clustered([(1, 4), (2, 4), (3, 4)])
    assert interval.method == "clustered"
    z = 2.14147
    reach = z * math.sqrt(0.25 / 7.5 + (z / 15) ** 2) / (1 + z * z / 7.5)
    assert interval.high - 0.5 == pytest.approx(0.5 - interval.low)
    assert interval.high - 0.5 == pytest.approx(reach, abs=1e-4)


def test_tasks_of_one_rate_are_worth_all_their_attempts_and_no_more() -> None:
    assert effective_attempts([(1, 2)] * 40).attempts == 80
    assert effective_attempts([(1, 2), (2, 4)]).attempts == pytest.approx(16 / 3)


def test_tasks_that_are_all_or_nothing_are_worth_one_attempt_each() -> None:
    found = effective_attempts([(20, 20)] * 50 + [(0, 20)] * 50)
    assert found.attempts == pytest.approx(100, rel=0.02)


def test_without_any_failure_tasks_count_and_not_attempts() -> None:
    assert clustered([(5, 5)] * 10)[:2] == pytest.approx(wilson(10, 10)[:2])
    assert clustered([(0, 5)] * 10)[:2] == pytest.approx(wilson(0, 10)[:2])


def test_many_tasks_come_to_students_t() -> None:
    rates = [(x, 20) for x in (4, 8, 10, 12, 16) * 60]
    mean = 0.5
    deviation = math.sqrt(sum((x / 20 - mean) ** 2 for x, _ in rates) / (len(rates) - 1))
    reach = 1.96793 * deviation / math.sqrt(len(rates))
    assert clustered(rates).high - mean == pytest.approx(reach, rel=0.02)


@pytest.mark.parametrize(
    ("tasks", "as_if"), [([(2, 5)], (2, 5)), ([(1, 1), (0, 1), (1, 1)], (2, 3))]
)
def test_one_task_or_single_attempts_are_wilsons(
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


@given(TASKS)
def test_an_interval_does_not_know_passes_from_failures(tasks: list[tuple[int, int]]) -> None:
    mirrored = clustered([(n - x, n) for x, n in tasks])
    interval = clustered(tasks)
    assert (1 - interval.high, 1 - interval.low) == pytest.approx(mirrored[:2])


@pytest.mark.parametrize(
    ("both", "only_a", "only_b", "neither"), [(9, 3, 1, 2), (0, 0, 0, 10), (36, 7, 2, 5)]
)
def test_single_attempts_have_agresti_and_mins_interval(
    both: int, only_a: int, only_b: int, neither: int
) -> None:
    # In their words: half an observation is added to each cell of the two-by-two table.
    count = both + only_a + only_b + neither + 2
    p12, p21 = (only_a + 0.5) / count, (only_b + 0.5) / count
    reach = 1.959964 * math.sqrt((p12 + p21 - (p21 - p12) ** 2) / count)
    differences = [0.0] * (both + neither) + [-1.0] * only_a + [1.0] * only_b
    interval = paired(differences)
    assert interval.low == pytest.approx(max(-1.0, p21 - p12 - reach), abs=1e-6)
    assert interval.high == pytest.approx(min(1.0, p21 - p12 + reach), abs=1e-6)


def test_on_one_task_the_difference_is_newcombes_published_one() -> None:
    # Newcombe 1998, table II, contrast (a), method 10: 56/70 − 48/80.
    interval = fixed([(48, 80)], [(56, 70)])
    assert interval.low == pytest.approx(0.0524, abs=1e-4)
    assert interval.high == pytest.approx(0.3339, abs=1e-4)


def test_tasks_that_never_change_add_no_chance_to_a_difference() -> None:
    known = fixed([(20, 20)] * 5 + [(0, 20)] * 5, [(20, 20)] * 5 + [(0, 20)] * 5)
    mixed = fixed([(10, 20)] * 10, [(10, 20)] * 10)
    assert known.high < mixed.high / 2
    assert known.low < 0.0 < known.high


@given(TASKS, TASKS)
def test_a_difference_the_other_way_round_is_its_mirror(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    count = min(len(a), len(b))
    there, back = fixed(a[:count], b[:count]), fixed(b[:count], a[:count])
    assert (-back.high, -back.low) == pytest.approx(there[:2])
    assert -1.0 <= there.low < there.high <= 1.0


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts(case: tuple[int, int, int]) -> None:
    valid, passes, k = case
    choices = list(itertools.combinations([True] * passes + [False] * (valid - passes), k))
    found = list(pass_over_k(passes, valid))
    assert len(found) == valid
    assert found[k - 1].at == pytest.approx(sum(map(any, choices)) / len(choices))
    assert found[k - 1].every == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize("passes", [0, 1, 1000, 1999, 2000])
def test_pass_at_k_of_thousands_of_attempts(passes: int) -> None:
    found = list(pass_over_k(passes, 2000))
    for k in (1, 7, 1000, 2000):
        ways = math.comb(2000, k)
        assert found[k - 1].at == pytest.approx(1 - math.comb(2000 - passes, k) / ways)
        assert found[k - 1].every == pytest.approx(math.comb(passes, k) / ways)
