"""Several runs in a row against those before them: an exact test with a yearly error. Pure.

After every run the last 1, 2, 4 and 8 runs are held against the runs before them, task by task. If
nothing has changed, each task's passes are spread over its attempts by chance alone: given how
many there are in all, those of the last runs are hypergeometric, whatever the task's own rate is
(Fisher 1935). The statistic is the sum over tasks, whose distribution is the convolution of
theirs, so the p-value is exact for any mixture of easy and hard tasks, and no baseline is taken
for the truth (a stratified one-sided test, as Mantel and Haenszel 1959).

An alarm is raised where the smallest p over the windows is at most a limit: the rate of false
alarms a year divided by the runs a year, by the lines that are tested, and by what the four
overlapping windows come to, ``WINDOWS_WORTH`` independent tests a run. ``false_alarms`` measures
all of it by simulation; its table stands in ``docs/series.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

WINDOWS = (1, 2, 4, 8)
WINDOWS_WORTH = 2.5
"""Independent tests a run that the windows together are worth near the limit; simulated."""
MOST_BEFORE = 52
"""Runs before that a window is held against, the latest of them."""
RECOVERED_RUNS = 2
RECOVERED_P = 0.2
"""A fall is over where so many last runs, against those before the fall, are no rarer than this."""
SCREEN_Z = -1.5
"""Above this many standard deviations no p is near a limit, and its exact value is not needed."""


class Count(NamedTuple):
    """A task's attempts in one run."""

    passed: int
    valid: int
    missing: int = 0


class Found(NamedTuple):
    """The window that speaks loudest."""

    p: float
    window: int
    recent: tuple[int, int]
    """(passed, valid attempts) over the tasks."""
    before: tuple[int, int]


Run = dict[str, Count]
"""One run of a line: task to its attempts."""


def limit_of(false_alarms_a_year: float, runs_a_year: int, lines: int) -> float:
    """The p at which an alarm is raised.

    Args:
        false_alarms_a_year: the chance that a year of an unchanged agent may have any alarm.
        runs_a_year: how often the series runs.
        lines: how many lines of it are tested.
    """
    looks = runs_a_year * lines * WINDOWS_WORTH
    return -math.expm1(math.log1p(-false_alarms_a_year) / looks)


def loudest(runs: Sequence[Run]) -> Found | None:
    """The smallest p over the windows; None where there is nothing to hold a run against.

    Args:
        runs: in order, the last one is judged.
    """
    found: Found | None = None
    for window in WINDOWS:
        if window >= len(runs):
            break
        recent, before = runs[-window:], runs[-window - MOST_BEFORE : -window]
        each = against(recent, before)
        if each is not None and (found is None or each.p < found.p):
            found = each
    return found


def against(recent: Sequence[Run], before: Sequence[Run]) -> Found | None:
    """Whether so few passes are likely if nothing has changed; None: no task is on both sides.

    What is missing never helps to claim a fall: it counts as passed in the recent runs, and is
    left out of those before.
    """
    strata: list[tuple[int, int, int, int]] = []
    shown = [0, 0, 0, 0]
    now, was = _summed(recent), _summed(before)
    for task, (passed, valid, missing) in now.items():
        past = was.get(task)
        if past is None or not past.valid or not valid + missing:
            continue
        strata.append((passed + missing, valid + missing, past.passed, past.valid))
        for place, value in enumerate((passed, valid, past.passed, past.valid)):
            shown[place] += value
    if not strata:
        return None
    p = lower_tail(strata)
    return Found(p, len(recent), (shown[0], shown[1]), (shown[2], shown[3]))


def lower_tail(strata: Sequence[tuple[int, int, int, int]]) -> float:
    """P(so few passes on the first side in all), given each stratum's passes on both together.

    Args:
        strata: (passes, attempts, passes, attempts) of the two sides, a task each.
    """
    seen = sum(each[0] for each in strata)
    mean = variance = 0.0
    for x, n, y, m in strata:
        share = (x + y) / (n + m)
        mean += n * share
        if n + m > 1:
            variance += n * share * (1.0 - share) * m / (n + m - 1)
    if variance == 0.0:
        return 1.0
    z = (seen - mean) / math.sqrt(variance)
    if z > SCREEN_Z:
        return 0.5 * math.erfc(-(z + 0.5 / math.sqrt(variance)) / math.sqrt(2.0))
    return _exact(strata, seen)


def _exact(strata: Sequence[tuple[int, int, int, int]], seen: int) -> float:
    """The convolution of the hypergeometric distributions, up to the sum seen."""
    sums, low = [1.0], 0
    for x, n, y, m in strata:
        together = x + y
        first, last = max(0, together - m), min(n, together)
        whole = math.comb(n + m, together)
        chances = [
            math.comb(n, k) * math.comb(m, together - k) / whole for k in range(first, last + 1)
        ]
        grown = [0.0] * (len(sums) + len(chances) - 1)
        for i, a in enumerate(sums):
            if a:
                for j, b in enumerate(chances):
                    grown[i + j] += a * b
        sums, low = grown, low + first
    return min(1.0, math.fsum(sums[: max(0, seen - low + 1)]))


def _summed(runs: Sequence[Run]) -> Run:
    total: dict[str, list[int]] = {}
    for run in runs:
        for task, count in run.items():
            kept = total.setdefault(task, [0, 0, 0])
            kept[0] += count.passed
            kept[1] += count.valid
            kept[2] += count.missing
    return {task: Count(*kept) for task, kept in total.items()}
