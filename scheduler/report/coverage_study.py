"""How often the 95 % intervals hold the truth: ``python -m scheduler.report.coverage_study``.

Sweeps are simulated whose truth is known: T tasks with own rates from a Beta distribution, k
attempts of each. The very functions that reports use are asked for the interval. The table that
it prints stands in ``docs/statistics.md``; with the default seed and size it is the same on any
machine.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from scheduler.report.distributions import t_quantile
from scheduler.report.intervals import Interval, clustered, fixed, paired

TASKS = (10, 30, 90)
ATTEMPTS = (1, 3, 5, 20)
PAIR_ATTEMPTS = (1, 3, 5)
MEANS = (0.1, 0.3, 0.5, 0.7, 0.9)
HALF_WIDTH = 0.05
"""The true mean is drawn from this far around each of ``MEANS``: with few tasks the coverage at
one single rate jumps up and down, since passes are whole numbers."""
CONCENTRATIONS = (1.0, 3.0, 10.0)
"""a + b of the Beta distribution: tasks mostly all or nothing, in between, and much alike."""
BROKEN = 0.15
"""Of the pairs in which one side breaks tasks: the share of tasks that it breaks."""
LEFT = 0.2
"""Of a broken task's rate, what is left of it."""
RUNS = 4000
SEED = 1

Tasks = list[tuple[int, int]]


class Share(NamedTuple):
    """What came out for one kind of sweep."""

    name: str
    coverage: float
    width: float


class Row(NamedTuple):
    """All kinds of sweeps of one size."""

    tasks: int
    attempts: int
    shares: tuple[Share, ...]

    @property
    def mean(self) -> float:
        """The mean coverage over the kinds."""
        return math.fsum(each.coverage for each in self.shares) / len(self.shares)

    @property
    def width(self) -> float:
        """The mean width over the kinds."""
        return math.fsum(each.width for each in self.shares) / len(self.shares)

    @property
    def least(self) -> Share:
        """The kind with the lowest coverage."""
        return min(self.shares, key=lambda each: each.coverage)

    @property
    def most(self) -> Share:
        """The kind with the highest."""
        return max(self.shares, key=lambda each: each.coverage)


def students_t(tasks: Sequence[tuple[int, int]]) -> Interval:
    """For comparison: mean of per-task rates ± t(T − 1) standard errors, cut at 0 and 1."""
    rates = [passes / attempts for passes, attempts in tasks]
    count, mean = len(rates), math.fsum(rates) / len(rates)
    variance = math.fsum((rate - mean) ** 2 for rate in rates) / (count - 1)
    reach = t_quantile(0.975, count - 1) * math.sqrt(variance / count)
    return Interval(max(0.0, mean - reach), min(1.0, mean + reach), "clustered")


def study_rates(
    method: Callable[[Sequence[tuple[int, int]]], Interval], runs: int, seed: int
) -> Iterator[Row]:
    """The coverage of an interval of one condition's rate, a row for every T and k."""
    for count in TASKS:
        for attempts in ATTEMPTS:
            shares = []
            for mean in MEANS:
                for concentration in CONCENTRATIONS:
                    source = _source(seed, count, attempts, mean, concentration)
                    held, width = 0, 0.0
                    for _ in range(runs):
                        truth = mean + source.uniform(-HALF_WIDTH, HALF_WIDTH)
                        rates = _rates(source, count, truth, concentration)
                        interval = method(_tried(source, rates, attempts))
                        held += interval.low <= truth <= interval.high
                        width += interval.high - interval.low
                    name = f"{mean:g}/{concentration:g}"
                    shares.append(Share(name, held / runs, width / runs))
            yield Row(count, attempts, tuple(shares))


def study_pairs(scope: Literal["such", "these"], runs: int, seed: int) -> Iterator[Row]:
    """The coverage of the interval of a difference, a row for every T and k.

    The two sides have the same rates task by task (``same``), rates drawn apart (``apart``), or
    one side breaks some tasks (``broken``). The truth is that over all such tasks, which
    ``paired`` is to hold, or that on these tasks alone, which ``fixed`` is to hold.
    """
    for count in TASKS:
        for attempts in PAIR_ATTEMPTS:
            shares = []
            for mean in MEANS:
                for concentration in (CONCENTRATIONS[0], CONCENTRATIONS[-1]):
                    for kind in ("same", "apart", "broken"):
                        source = _source(seed, count, attempts, mean, concentration, kind)
                        held, width = 0, 0.0
                        for _ in range(runs):
                            middle = mean + source.uniform(-HALF_WIDTH, HALF_WIDTH)
                            first = _rates(source, count, middle, concentration)
                            second, truth = _other(source, kind, first, middle, concentration)
                            before = _tried(source, first, attempts)
                            after = _tried(source, second, attempts)
                            if scope == "these":
                                truth = (math.fsum(second) - math.fsum(first)) / count
                                interval = fixed(before, after)
                            else:
                                moves = zip(before, after, strict=True)
                                interval = paired([(y - x) / attempts for (x, _), (y, _) in moves])
                            held += interval.low <= truth <= interval.high
                            width += interval.high - interval.low
                        name = f"{mean:g}/{concentration:g} {kind}"
                        shares.append(Share(name, held / runs, width / runs))
            yield Row(count, attempts, tuple(shares))


def table(runs: int, seed: int) -> Iterator[str]:
    """The whole study as Markdown, line by line as it is found."""
    parts = (
        ("Rates: `clustered`, as reports have it", study_rates(clustered, runs, seed)),
        ("Rates: Student's t with T − 1, not used", study_rates(students_t, runs, seed)),
        ("Differences over such tasks: `paired`", study_pairs("such", runs, seed)),
        ("Differences on these tasks: `fixed`", study_pairs("these", runs, seed)),
    )
    for title, rows in parts:
        yield f"{title}:"
        yield ""
        yield "| T | k | coverage | lowest (mean/concentration) | highest | mean width |"
        yield "|--:|--:|--:|--:|--:|--:|"
        for row in rows:
            yield (
                f"| {row.tasks} | {row.attempts} | {row.mean:.1%} "
                f"| {row.least.coverage:.1%} ({row.least.name}) "
                f"| {row.most.coverage:.1%} ({row.most.name}) | {row.width:.3f} |"
            )
        yield ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="simulated sweeps of each kind")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(arguments)
    for line in table(given.runs, given.seed):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _source(*parts: object) -> random.Random:
    """A source of its own for every kind, so that one kind can be run again alone."""
    return random.Random("/".join(map(str, parts)))


def _rates(source: random.Random, count: int, mean: float, concentration: float) -> list[float]:
    a, b = mean * concentration, (1.0 - mean) * concentration
    return [source.betavariate(a, b) for _ in range(count)]


def _tried(source: random.Random, rates: Sequence[float], attempts: int) -> Tasks:
    draw = source.random
    return [(sum(draw() < rate for _ in range(attempts)), attempts) for rate in rates]


def _other(
    source: random.Random, kind: str, rates: list[float], mean: float, concentration: float
) -> tuple[list[float], float]:
    """The other side's rates, and the true mean difference over all such tasks."""
    if kind == "same":
        return rates, 0.0
    if kind == "apart":
        return _rates(source, len(rates), mean, concentration), 0.0
    broken = [rate * LEFT if source.random() < BROKEN else rate for rate in rates]
    return broken, -BROKEN * (1.0 - LEFT) * mean


if __name__ == "__main__":
    main()
