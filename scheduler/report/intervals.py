"""95 % intervals of pass rates and of their differences, and the unbiased pass@k. Pure.

Attempts of one task are not independent of each other, so the tasks are the sample: a rate is
the mean of the tasks' own rates. How far such a mean may be off is known from the spread between
tasks. Student's t on that spread misses badly where rates are near 0 or 1 or tasks are few
(``docs/statistics.md`` has the figures), so the spread goes into Wilson's interval instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from scheduler.report.distributions import normal_quantile, t_quantile

LEVEL = 0.95
"""The confidence level of every interval unless another is asked for."""
PRIOR_TASKS = 0.5
"""Of the largest spread possible, what is known before any task is seen, counted in tasks."""


class Interval(NamedTuple):
    """An interval of a rate between 0 and 1, or of a difference of rates between −1 and 1."""

    low: float
    high: float
    method: Literal["wilson", "clustered", "paired", "fixed"]
    """``clustered``: by task, Wilson's of an effective number of attempts; ``paired``: of
    differences by task; ``fixed``: of a difference on these very tasks."""


def wilson(passes: float, trials: float, level: float = LEVEL) -> Interval:
    """Wilson's score interval (Wilson 1927; Brown, Cai and DasGupta 2001, eq. 4).

    Args:
        passes: how many passed; a fraction where trials are an effective number.
        trials: of how many, above 0.
        level: of confidence.
    """
    z = normal_quantile(0.5 + level / 2)
    return Interval(*_wilson(passes / trials, trials, z), "wilson")


def clustered(tasks: Sequence[tuple[int, int]]) -> Interval:
    """The interval of the mean of per-task rates, over tasks like these.

    Wilson's interval with the effective number of attempts: that of independent attempts whose
    rate would vary as much as the mean of these tasks' rates does (Kott and Carr 1997; Franco,
    Little, Louis and Slud 2019). The variance between tasks is steadied by half a task of the
    largest possible one, since few tasks may show none at all by chance.

    Args:
        tasks: (passes, attempts) of each task, at least one, each with attempts.

    One task alone, or attempts that are all single, leave nothing to cluster: Wilson's interval
    over the attempts.
    """
    count = len(tasks)
    if count == 1 or all(attempts == 1 for _, attempts in tasks):
        return wilson(sum(passes for passes, _ in tasks), sum(attempts for _, attempts in tasks))
    mean = math.fsum(passes / attempts for passes, attempts in tasks) / count
    effective = effective_attempts(tasks)
    quantile = t_quantile(0.5 + LEVEL / 2, effective.freedom)
    return Interval(*_wilson(mean, effective.attempts, quantile), "clustered")


class Effective(NamedTuple):
    """What some tasks are worth."""

    attempts: float
    """As many independent attempts say as much of the mean rate."""
    freedom: float
    """Degrees of freedom of its standard error; infinite where the rate alone tells it."""


def effective_attempts(tasks: Sequence[tuple[int, int]]) -> Effective:
    """How many independent attempts say as much of the mean rate as these tasks.

    Never more than if attempts of one task were independent of each other. Of the variance
    between tasks' rates, the part that chance in their attempts explains is known from the mean;
    only the rest is estimated, with T − 1 degrees of freedom. The variance as a whole has
    (T − 1)/share² of them, where ``share`` is the estimated part (Satterthwaite 1946).

    Args:
        tasks: (passes, attempts) of each, at least two.
    """
    count = len(tasks)
    rates = [passes / attempts for passes, attempts in tasks]
    mean = math.fsum(rates) / count
    largest = mean * (1.0 - mean)
    single = math.fsum(1.0 / attempts for _, attempts in tasks) / count
    squares = math.fsum((rate - mean) ** 2 for rate in rates)
    spread = (squares + PRIOR_TASKS * largest) / (count - 1 + PRIOR_TASKS)
    if spread <= 0.0:
        # All passes or all failures show neither a spread nor how large one could be.
        return Effective(float(count), math.inf)
    share = max(0.0, 1.0 - largest * single / spread)
    return Effective(
        attempts=min(max(count * largest / spread, 1.0), count / single),
        freedom=(count - 1) / share**2 if share else math.inf,
    )


def paired(differences: Sequence[float], level: float = LEVEL) -> Interval:
    """The interval of the mean difference of per-task rates, over tasks like these.

    Adjusted Wald: two tasks are added that were not seen, half of one that fell from 1 to 0, half
    of one that rose from 0 to 1, and one that stayed (Agresti and Min 2005, there for single
    attempts). Tasks that moved not at all are no proof that none would.

    Args:
        differences: of each task, between −1 and 1; at least one.
        level: of confidence.
    """
    count = len(differences) + 2
    mean = math.fsum(differences) / count
    square = (math.fsum(each * each for each in differences) + 1.0) / count
    reach = normal_quantile(0.5 + level / 2) * math.sqrt((square - mean * mean) / count)
    return Interval(max(-1.0, mean - reach), min(1.0, mean + reach), "paired")


def fixed(
    a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]], level: float = LEVEL
) -> Interval:
    """The interval of the difference b − a of mean rates on these very tasks.

    Tasks are no sample here: only the attempts could have fallen out otherwise. Each side has
    Wilson's interval, and the two are joined as Newcombe does (Newcombe 1998, method 10; Zou and
    Donner 2008).

    Args:
        a: (passes, attempts) of each task, at least one, each with attempts.
        b: the same tasks on the other side.
        level: of confidence.
    """
    z = normal_quantile(0.5 + level / 2)
    rates = [math.fsum(x / n for x, n in side) / len(side) for side in (a, b)]
    ends = [
        _wilson(rate, _attempts_on_these(side, rate), z)
        for side, rate in zip((a, b), rates, strict=True)
    ]
    difference = rates[1] - rates[0]
    below = math.hypot(rates[1] - ends[1][0], ends[0][1] - rates[0])
    above = math.hypot(ends[1][1] - rates[1], rates[0] - ends[0][0])
    return Interval(max(-1.0, difference - below), min(1.0, difference + above), "fixed")


class PassOverK(NamedTuple):
    """Of k attempts of a task."""

    at: float
    """The chance that at least one passes: pass@k."""
    every: float
    """The chance that all pass: pass^k."""


def pass_over_k(passes: int, valid: int) -> Iterator[PassOverK]:
    """pass@k and pass^k for k = 1 to ``valid``, unbiased over so many attempts.

    Sources: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", eq. 1:
    1 − C(n − c, k)/C(n, k); Yao et al. 2024, "τ-bench", section 4: C(c, k)/C(n, k). Both quotients
    are products that grow by one factor with k, as the binomials of thousands are slow to make.
    """
    none = every = 1.0
    for drawn in range(valid):
        none *= max(0, valid - passes - drawn) / (valid - drawn)
        every *= max(0, passes - drawn) / (valid - drawn)
        yield PassOverK(1.0 - none, every)


def _attempts_on_these(tasks: Sequence[tuple[int, int]], rate: float) -> float:
    """How many attempts of one mixed task say as much of the mean rate as these.

    At least as many as there are, since tasks that always or never pass add no chance. One pass
    and one failure are added to each task before its chance is judged, so that few attempts
    that agree do not count as certainty.
    """
    count = len(tasks)
    mixed = count**2 / math.fsum(1.0 / attempts for _, attempts in tasks)
    likely = [((passes + 1) / (attempts + 2), attempts) for passes, attempts in tasks]
    variance = math.fsum(p * (1.0 - p) / attempts for p, attempts in likely) / count**2
    return max(mixed, rate * (1.0 - rate) / variance)


def _wilson(rate: float, trials: float, z: float) -> tuple[float, float]:
    centre = rate + z * z / (2 * trials)
    spread = z * math.sqrt(max(0.0, rate * (1 - rate)) / trials + (z / (2 * trials)) ** 2)
    scale = 1 + z * z / trials
    low = (centre - spread) / scale if rate > 0.0 else 0.0
    high = (centre + spread) / scale if rate < 1.0 else 1.0
    return max(0.0, low), min(1.0, high)
