"""How often the sequential test is wrong, and how soon it is right: by simulated years.

``python -m scheduler.series.false_alarms`` prints the table of ``docs/series.md``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from scheduler.report.distributions import normal_quantile
from scheduler.report.intervals import wilson
from scheduler.series.sequential import WINDOWS, Count, Run, limit_of, loudest

RUNS_A_YEAR = 52
FALSE_ALARMS_A_YEAR = 0.05
DROP = 0.2
WEEKS = (1, 2, 4, 8)
"""After a drop it is told how many were found within so many weeks."""

Rates = list[float]


class Kind(NamedTuple):
    """What tasks are like, and how they fall."""

    name: str
    draw: Callable[[random.Random, int], Rates]
    drop: Callable[[Rates], Rates]


class Row(NamedTuple):
    """What a kind came to."""

    kind: str
    tasks: int
    history: int
    alarms: int
    years: int
    found: tuple[int, ...]
    """Drops that were found within each of ``WEEKS``."""
    drops: int


def _same(rate: float) -> Callable[[random.Random, int], Rates]:
    return lambda source, tasks: [rate] * tasks


def _mixed(source: random.Random, tasks: int) -> Rates:
    return [source.betavariate(2.1, 0.9) for _ in range(tasks)]


def _all_fall(rates: Rates) -> Rates:
    """Every task by the same share, the mean by ``DROP``."""
    mean = sum(rates) / len(rates)
    return [rate * max(0.0, mean - DROP) / mean for rate in rates]


def _some_break(rates: Rates) -> Rates:
    """The best tasks fall to nothing, until the mean has fallen by ``DROP``."""
    left, fallen = DROP * len(rates), list(rates)
    for place in sorted(range(len(rates)), key=lambda place: -rates[place]):
        lost = min(left, fallen[place])
        fallen[place] -= lost
        left -= lost
    return fallen


KINDS = (
    Kind("mixed tasks (Beta, mean 0.7), all fall", _mixed, _all_fall),
    Kind("mixed tasks (Beta, mean 0.7), some break", _mixed, _some_break),
    Kind("every task at 0.9, all fall", _same(0.9), _all_fall),
    Kind("every task at 0.5, all fall (the hardest)", _same(0.5), _all_fall),
)


def study(tasks: int, kind: Kind, *, history: int, count: int, seed: int, attempts: int = 3) -> Row:
    """Years without a change, and drops after a history of so many weeks."""
    source = random.Random(f"{seed}/{tasks}/{kind.name}/{history}")
    limit = limit_of(FALSE_ALARMS_A_YEAR, RUNS_A_YEAR, 1)
    years = [_year(source, kind, tasks, attempts) for _ in range(count)]
    alarms = sum(_first_alarm(year, limit) > 0 for year in years)
    delays = []
    for _ in range(count):
        rates = kind.draw(source, tasks)
        fallen = kind.drop(rates)
        runs = [_run(source, rates, attempts) for _ in range(history)]
        late = [_run(source, fallen, attempts) for _ in range(WEEKS[-1])]
        delays.append(_delay(runs, late, limit))
    found = tuple(sum(0 < delay <= weeks for delay in delays) for weeks in WEEKS)
    return Row(kind.name, tasks, history, alarms, count, found, count)


def years_with_an_alarm(tasks: int, kind: Kind, *, count: int, seed: int, attempts: int = 3) -> int:
    """Of so many years without a change."""
    source = random.Random(seed)
    limit = limit_of(FALSE_ALARMS_A_YEAR, RUNS_A_YEAR, 1)
    years = (_year(source, kind, tasks, attempts) for _ in range(count))
    return sum(_first_alarm(year, limit) > 0 for year in years)


def alarms_of_many_attempts(count: int, seed: int) -> int:
    """Years with an alarm where each run's mean is normal: the limit of many attempts."""
    source = random.Random(seed)
    z = normal_quantile(limit_of(FALSE_ALARMS_A_YEAR, RUNS_A_YEAR, 1))
    alarms = 0
    for _ in range(count):
        sums = [0.0]
        for _ in range(RUNS_A_YEAR):
            sums.append(sums[-1] + source.gauss(0.0, 1.0))
        alarms += any(
            (sums[n] - sums[n - w]) / w - sums[n - w] / (n - w)
            <= z * math.sqrt(1 / w + 1 / (n - w))
            for n in range(2, RUNS_A_YEAR + 1)
            for w in WINDOWS
            if w < n
        )
    return alarms


def _year(source: random.Random, kind: Kind, tasks: int, attempts: int) -> list[Run]:
    rates = kind.draw(source, tasks)
    return [_run(source, rates, attempts) for _ in range(RUNS_A_YEAR)]


def _run(source: random.Random, rates: Sequence[float], attempts: int) -> Run:
    return {
        str(place): Count(sum(source.random() < rate for _ in range(attempts)), attempts)
        for place, rate in enumerate(rates)
    }


def _first_alarm(runs: Sequence[Run], limit: float) -> int:
    """The number of the first run that raises an alarm; 0: none does."""
    for number in range(2, len(runs) + 1):
        found = loudest(runs[:number])
        if found is not None and found.p <= limit:
            return number
    return 0


def _delay(before: Sequence[Run], after: Sequence[Run], limit: float) -> int:
    """Runs after the drop until the alarm, at least 1; 0: none."""
    for number in range(1, len(after) + 1):
        found = loudest([*before, *after[:number]])
        if found is not None and found.p <= limit:
            return number
    return 0


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as Markdown."""
    heads = " | ".join(f"found in {weeks}" for weeks in WEEKS)
    yield f"| tasks | weeks before | kind | years with an alarm | {heads} |"
    yield "|--:|--:|---|--:|" + "--:|" * len(WEEKS)
    for row in rows:
        most = wilson(row.alarms, row.years)
        found = " | ".join(f"{hits / row.drops:.0%}" for hits in row.found)
        yield (
            f"| {row.tasks} | {row.history} | {row.kind} | "
            f"{row.alarms / row.years:.1%} [{most.low:.1%}, {most.high:.1%}] | {found} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table; some minutes."""
    parser = argparse.ArgumentParser(description="How often the sequential test is wrong.")
    parser.add_argument("--count", type=int, default=1000, help="years and drops of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tasks", type=int, nargs="*", default=[4, 10, 90])
    parser.add_argument("--history", type=int, nargs="*", default=[8, 26])
    parser.add_argument("--years", type=int, help="only years without a change, so many of a kind")
    given = parser.parse_args(arguments)
    if given.years and not given.tasks:
        sys.stdout.write(f"{alarms_of_many_attempts(given.years, given.seed) / given.years:.1%}\n")
        return
    if given.years:
        for tasks, kind in itertools.product(given.tasks, KINDS):
            alarms = years_with_an_alarm(tasks, kind, count=given.years, seed=given.seed)
            most = wilson(alarms, given.years)
            sys.stdout.write(
                f"| {tasks} | {kind.name} | {given.years} | {alarms / given.years:.1%} "
                f"[{most.low:.1%}, {most.high:.1%}] |\n"
            )
        return
    rows = [
        study(tasks, kind, history=history, count=given.count, seed=given.seed)
        for tasks in given.tasks
        for history in given.history
        for kind in KINDS
    ]
    sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
