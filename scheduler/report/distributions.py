"""Quantiles and tails of the distributions that the statistics need; the door to ``scipy``."""

from __future__ import annotations

import functools
import math

from scipy import special

NORMAL = 1e6
"""From so many degrees of freedom on, Student's t is the normal to six digits."""


@functools.cache
def normal_quantile(p: float) -> float:
    """The standard normal's quantile, 0 < p < 1."""
    return float(special.ndtri(p))


@functools.lru_cache(maxsize=4096)
def t_quantile(p: float, freedom: float) -> float:
    """The quantile of Student's t with so many degrees of freedom, 0 < p < 1.

    Args:
        p: the probability.
        freedom: above 0, also a fraction; infinite: the standard normal's.
    """
    return normal_quantile(p) if freedom > NORMAL else float(special.stdtrit(freedom, p))


def noncentral_t_tail(freedom: float, shift: float, t: float) -> float:
    """P(T > t) of the noncentral t with a noncentrality of ``shift``.

    With one degree of freedom by Owen's T function (Owen 1968, section 3): of two tasks,
    ``nctdtr`` knows nothing where it matters.
    """
    if freedom == 1:
        scaled = shift / math.hypot(1.0, t)
        return float(special.ndtr(scaled) - 2.0 * special.owens_t(scaled, t))
    tail = 1.0 - float(special.nctdtr(freedom, shift, t))
    if math.isnan(tail):
        # It gives up where the whole distribution lies on one side.
        return 1.0 if shift > t else 0.0
    return tail


def binomial_tail(passes: int, trials: int, rate: float) -> float:
    """P(X ≤ passes) of a binomial: how likely so few passes are at a rate."""
    return float(special.bdtr(passes, trials, rate))


def fewer_passes(passes: int, trials: int, other_passes: int, other_trials: int) -> float:
    """Fisher's exact test, one-sided: the chance of so few passes if both rates are the same.

    Given the passes of both together, those of one are hypergeometric (Fisher 1935).
    """
    ways = _splits(passes, trials, other_passes, other_trials)
    return sum(count for x, count in ways.items() if x <= passes) / sum(ways.values())


def unlike_passes(passes: int, trials: int, other_passes: int, other_trials: int) -> float:
    """Fisher's exact test, two-sided: all splits that are no likelier than the one seen."""
    ways = _splits(passes, trials, other_passes, other_trials)
    seen = ways[passes]
    return sum(count for count in ways.values() if count <= seen) / sum(ways.values())


def _splits(passes: int, trials: int, other_passes: int, other_trials: int) -> dict[int, int]:
    """In how many ways the passes of both could have fallen to one, by how many of them."""
    together = passes + other_passes
    fewest, most = max(0, together - other_trials), min(trials, together)
    ways = {fewest: math.comb(trials, fewest) * math.comb(other_trials, together - fewest)}
    for x in range(fewest, most):
        # From one to the next by its ratio: thousands of attempts would take seconds otherwise.
        gained = (trials - x) * (together - x)
        ways[x + 1] = ways[x] * gained // ((x + 1) * (other_trials - together + x + 1))
    return ways
