"""The same figures from ``scipy.stats``, which takes a second to load."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from scheduler.report.distributions import (
    binomial_tail,
    fewer_passes,
    noncentral_t_tail,
    normal_quantile,
    t_quantile,
    unlike_passes,
)
from scheduler.report.intervals import wilson
from scheduler.report.permutation import holm, sign_flips
from scheduler.report.power import minimum_detectable

pytestmark = pytest.mark.long


def test_quantiles_and_tails() -> None:
    from scipy import stats

    for p in (0.5, 0.8, 0.975, 0.999):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p))
        for freedom in (1, 2.5, 9, 89):
            assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom))
    for shift in (-1.0, 0.5, 3.0):
        assert noncentral_t_tail(9, shift, 2.2) == pytest.approx(stats.nct.sf(2.2, 9, shift))
    for passes in range(8):
        assert binomial_tail(passes, 7, 0.9) == pytest.approx(stats.binom.cdf(passes, 7, 0.9))


@pytest.mark.parametrize("freedom", [1, 2, 9, 59])
@pytest.mark.parametrize("shift", [-60.0, -8.0, -0.5, 0.0, 3.0, 7.77, 16.33, 60.0])
def test_the_noncentral_t_is_its_integral(freedom: int, shift: float) -> None:
    from scipy import integrate, stats

    t = t_quantile(0.975, freedom)

    def beyond(scale: float) -> float:
        """Given the root of a chi-square over its degrees of freedom."""
        square = freedom * scale * scale
        density = 2 * freedom * scale * stats.chi2.pdf(square, freedom)
        return float(stats.norm.sf(t * scale - shift) * density)

    expected, _ = integrate.quad(beyond, 0, 8, limit=200, points=[1.0])
    assert noncentral_t_tail(freedom, shift, t) == pytest.approx(expected, abs=1e-7)


def test_wilsons_interval() -> None:
    from scipy import stats

    for passes, trials in ((0, 3), (1, 1), (7, 20), (88, 89), (450, 450)):
        expected = stats.binomtest(passes, trials).proportion_ci(method="wilson")
        interval = wilson(passes, trials)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_fishers_exact_test_in_all_small_tables() -> None:
    from scipy import stats

    for trials, others in ((1, 1), (3, 3), (5, 3), (4, 7)):
        for passes in range(trials + 1):
            for other in range(others + 1):
                table = [[passes, trials - passes], [other, others - other]]
                one = stats.fisher_exact(table, alternative="less").pvalue
                two = stats.fisher_exact(table).pvalue
                assert fewer_passes(passes, trials, other, others) == pytest.approx(one)
                assert unlike_passes(passes, trials, other, others) == pytest.approx(two)


def test_sign_flips() -> None:
    import numpy as np
    from scipy import stats

    source = random.Random(3)
    for _ in range(10):
        steps = [source.randint(-4, 4) for _ in range(10)]
        expected = stats.permutation_test(
            (np.array(steps),), np.sum, permutation_type="samples", n_resamples=np.inf
        )
        assert sign_flips([Fraction(each, 4) for each in steps]).p == pytest.approx(expected.pvalue)


def test_power_by_simulation() -> None:
    """80 % of simulated paired comparisons find the difference that is said to be found."""
    import numpy as np
    from scipy import stats

    source = np.random.default_rng(4)
    for tasks in (5, 10, 30):
        effect = minimum_detectable(tasks, 1.0)
        assert effect is not None
        samples = source.normal(effect, 1.0, (20_000, tasks))
        found = (stats.ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05).mean()
        assert found == pytest.approx(0.8, abs=0.012)


def test_holms_correction_bounds_the_false_claims() -> None:
    """With no difference anywhere, one claim or more is made in about 5 % of families."""
    source = random.Random(5)
    families = [[source.random() for _ in range(6)] for _ in range(20_000)]
    wrong = sum(min(holm(family)) <= 0.05 for family in families) / len(families)
    assert wrong == pytest.approx(1 - (1 - 0.05 / 6) ** 6, abs=0.006)
