"""95 % intervals of pass rates, and the unbiased pass@k. Pure.

Attempts of one task are not independent of each other, so a rate over several tasks is taken
as the mean of the tasks' own rates and its interval from their spread (Student's t with T−1
degrees of freedom). Wilson's interval is used where there is no such spread to see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from scipy import special

LEVEL = 0.95
"""The confidence level of every interval."""


class Interval(NamedTuple):
    """An interval of a rate, both ends within 0 and 1."""

    low: float
    high: float
    method: Literal["wilson", "clustered"]
    """``clustered``: by task, with Student's t."""


def wilson(passes: float, trials: int) -> Interval:
    """Wilson's score interval.

    Args:
        passes: how many passed; a fraction where trials are tasks with rates of their own.
        trials: of how many, at least one.
    """
    z = float(special.ndtri(0.5 + LEVEL / 2))
    rate = passes / trials
    centre = rate + z * z / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2)
    scale = 1 + z * z / trials
    return _clipped((centre - spread) / scale, (centre + spread) / scale, "wilson")


def clustered(tasks: Sequence[tuple[int, int]]) -> Interval:
    """The interval of the mean of per-task rates.

    Args:
        tasks: (passes, valid attempts) of each task, at least one, each with valid attempts.

    One task alone, or attempts that are all single, leave nothing to cluster; tasks that all
    have the same rate show no spread, which would give an interval of no width. Wilson's is
    taken then: over the attempts in the first two cases, over the tasks in the third.
    """
    if len(tasks) == 1 or all(valid == 1 for _, valid in tasks):
        return wilson(sum(p for p, _ in tasks), sum(valid for _, valid in tasks))
    rates = [passes / valid for passes, valid in tasks]
    count = len(rates)
    mean = math.fsum(rates) / count
    variance = math.fsum((rate - mean) ** 2 for rate in rates) / (count - 1)
    if math.isclose(variance, 0.0, abs_tol=1e-12):
        return wilson(mean * count, count)
    reach = float(special.stdtrit(count - 1, 0.5 + LEVEL / 2)) * math.sqrt(variance / count)
    return _clipped(mean - reach, mean + reach, "clustered")


def pass_at(k: int, passes: int, valid: int) -> float:
    """The chance that at least one of k attempts passes, unbiased over ``valid`` of them."""
    return 1.0 - math.comb(valid - passes, k) / math.comb(valid, k)


def pass_all(k: int, passes: int, valid: int) -> float:
    """The chance that all of k attempts pass (pass^k), unbiased over ``valid`` of them."""
    return math.comb(passes, k) / math.comb(valid, k)


def _clipped(low: float, high: float, method: Literal["wilson", "clustered"]) -> Interval:
    return Interval(max(0.0, low), min(1.0, high), method)
