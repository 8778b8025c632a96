"""What difference a sweep of a given size can detect. Pure.

A comparison is paired by task: its unit is the difference of the two rates of one task, and what
counts is how much that difference spreads from task to task.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scheduler.report.distributions import noncentral_t_tail, t_quantile

ALPHA = 0.05
"""Two-sided."""
POWER = 0.8
RATE = 0.5
"""Assumed where nothing is known: the rate with the largest spread."""
CONCENTRATION = 2.0
"""Assumed of the tasks' own rates: those of Beta(rate · 2, (1 − rate) · 2), which for a rate of a
half is flat, from never to always."""
CHANGE = 0.1
"""Assumed standard deviation of what a change of condition does to a task's own rate."""


def minimum_detectable(tasks: int, spread: float) -> float | None:
    """The smallest mean difference that a paired comparison finds in 80 % of cases at 5 %.

    It is δ·spread with the δ at which the two-sided t test of T differences has the power:
    P(|t'(T−1, δ√T)| > t(0.975, T−1)) = 0.8, where t' is the noncentral t (Cohen 1988, section
    2.3; Julious 2004). It may be above 1: no difference of rates is found then.

    Args:
        tasks: T.
        spread: standard deviation of the differences between tasks, above 0.

    Returns:
        The difference of two rates; null for fewer than two tasks.
    """
    if tasks < 2:
        return None
    low, high = 0.0, 1.0
    while _power(tasks, high) < POWER:
        low, high = high, 2.0 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _power(tasks, middle) < POWER else (low, middle)
    return high * spread


def assumed_spread(attempts: int, rate: float = RATE) -> float:
    """The standard deviation of a task's difference where no earlier result tells it.

    Its square is CHANGE² + 2·w/k: what a condition changes, and the chance in the k attempts of
    both sides. Within a task, w is the mean of p(1 − p) over the assumed tasks' own rates,
    rate·(1 − rate)·c/(c + 1) for a Beta distribution of concentration c.

    Args:
        attempts: k of each side.
        rate: the mean over tasks.
    """
    within = rate * (1.0 - rate) * CONCENTRATION / (CONCENTRATION + 1.0)
    return math.sqrt(CHANGE**2 + 2.0 * within / attempts)


def spread_between(differences: Sequence[float]) -> float | None:
    """The standard deviation of differences between tasks, as seen; null for fewer than two."""
    count = len(differences)
    if count < 2:
        return None
    mean = math.fsum(differences) / count
    return math.sqrt(math.fsum((each - mean) ** 2 for each in differences) / (count - 1))


def spread_from_one_side(tasks: Sequence[tuple[int, int]]) -> float | None:
    """The spread of differences to expect from the results of one condition.

    CHANGE² + 2·(mean over tasks of the unbiased p(1 − p))/k̄, with k̄ the harmonic mean of the
    tasks' attempts; null where no task has two attempts, since a single one shows no chance.

    Args:
        tasks: (passes, attempts) of each.
    """
    repeated = [(passes, attempts) for passes, attempts in tasks if attempts > 1]
    if not repeated:
        return None
    within = math.fsum(
        passes * (attempts - passes) / (attempts * (attempts - 1)) for passes, attempts in repeated
    ) / len(repeated)
    inverse = math.fsum(1.0 / attempts for _, attempts in tasks) / len(tasks)
    return math.sqrt(CHANGE**2 + 2.0 * within * inverse)


def _power(tasks: int, effect: float) -> float:
    freedom, shift = tasks - 1, effect * math.sqrt(tasks)
    critical = t_quantile(1 - ALPHA / 2, freedom)
    upper = noncentral_t_tail(freedom, shift, critical)
    return upper + noncentral_t_tail(freedom, -shift, critical)
