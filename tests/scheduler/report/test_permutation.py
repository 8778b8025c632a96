from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.distributions import binomial_tail, fewer_passes, unlike_passes
from scheduler.report.permutation import holm, sign_flips

DARWIN = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
"""Differences of heights of Darwin's maize, in eighths of an inch."""


def test_darwins_maize_has_fishers_p() -> None:
    # Fisher 1935, section 21: 863 of 32,768 on each side, 5.267 %.
    found = sign_flips([Fraction(each, 8) for each in DARWIN])
    assert found.method == "exact"
    assert found.p == 2 * 863 / 2**15


@given(st.lists(st.fractions(-1, 1, max_denominator=6), max_size=6))
def test_it_is_the_share_of_all_sign_changes(differences: list[Fraction]) -> None:
    observed = abs(sum(differences, Fraction(0)))
    flips = list(itertools.product((1, -1), repeat=len(differences)))
    extreme = sum(
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True))) >= observed
        for signs in flips
    )
    assert sign_flips(differences).p == pytest.approx(extreme / len(flips))


def test_too_many_sums_are_drawn_and_come_to_the_same() -> None:
    exact = sign_flips([Fraction(each, 8) for each in DARWIN])
    drawn = sign_flips([Fraction(each, 8) for each in DARWIN], max_sums=10)
    assert drawn.method == "monte_carlo"
    assert drawn.p == pytest.approx(exact.p, abs=0.006)
    assert drawn == sign_flips([Fraction(each, 8) for each in DARWIN], max_sums=10)


@pytest.mark.parametrize("differences", [[], [Fraction(0)] * 5])
def test_nothing_that_moved_is_no_difference(differences: list[Fraction]) -> None:
    assert sign_flips(differences).p == 1.0


def test_hundreds_of_tasks_are_exact_too() -> None:
    found = sign_flips([Fraction(1, 5)] * 60 + [Fraction(-1, 5)] * 30 + [Fraction(3, 5)] * 10)
    assert found.method == "exact"
    assert 0 < found.p < 0.001


def test_the_tea_tasting_lady() -> None:
    # Fisher 1935, section 8: all eight cups right by chance once in seventy.
    assert fewer_passes(0, 4, 4, 4) == pytest.approx(1 / 70)
    assert unlike_passes(0, 4, 4, 4) == pytest.approx(2 / 70)
    assert fewer_passes(4, 4, 4, 4) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_holm_is_the_closed_test_of_bonferroni(p_values: list[float]) -> None:
    # Marcus, Peritz and Gabriel 1976: a claim holds if every set of hypotheses with it is refused.
    places = range(len(p_values))
    for place, adjusted in enumerate(holm(p_values)):
        sets = [
            chosen
            for size in range(1, len(p_values) + 1)
            for chosen in itertools.combinations(places, size)
            if place in chosen
        ]
        closed = max(min(1.0, len(some) * min(p_values[i] for i in some)) for some in sets)
        assert adjusted == pytest.approx(closed)


@pytest.mark.parametrize(("passes", "trials"), [(0, 1), (3, 7), (600, 700), (1070, 1200)])
def test_the_binomials_tail_is_the_exact_sum(passes: int, trials: int) -> None:
    ways = sum(math.comb(trials, x) * 9**x for x in range(passes + 1))
    assert binomial_tail(passes, trials, 0.9) == pytest.approx(float(Fraction(ways, 10**trials)))


def test_fisher_of_thousands_of_attempts_is_exact() -> None:
    ways = {x: math.comb(1500, x) * math.comb(1400, 2600 - x) for x in range(1200, 1501)}
    fewer = sum(count for x, count in ways.items() if x <= 1330)
    assert fewer_passes(1330, 1500, 1270, 1400) == float(Fraction(fewer, math.comb(2900, 2600)))
    assert fewer_passes(0, 5, 0, 3) == unlike_passes(5, 5, 3, 3) == 1.0
