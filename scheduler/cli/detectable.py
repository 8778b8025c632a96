"""What differences between conditions a planned sweep would find."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from scheduler.plan import Plan
from scheduler.report.names import counted

PAIRS_SHOWN = 10
"""Pairs of conditions that are named in one line."""


Shape = frozenset[tuple[str, int]]
"""The workflow tasks of a condition, each with its k."""


class Detectable(NamedTuple):
    """Of two conditions."""

    one: str
    other: str
    tasks: int
    """Workflow tasks that both run."""
    value: float | None
    """The difference of their rates that is found in 80 % of cases; null: too few tasks."""


def detectable(plan: Plan) -> list[Detectable]:
    """Every pair of conditions; canaries are compared with nothing."""
    sides: dict[str, dict[str, int]] = {
        name: {} for name in plan.conditions if name not in plan.canaries
    }
    for cell in plan.cells:
        if cell.canary is None and cell.task.layer == "workflow":
            sides[cell.condition.condition][cell.task.name] = plan.counts[cell.cell]
    # Most conditions of a matrix run the same tasks as often: each such pair is worked out once.
    shapes = {name: frozenset(side.items()) for name, side in sides.items()}
    known: dict[tuple[Shape, Shape], tuple[int, float | None]] = {}
    pairs = []
    for one, other in itertools.combinations(sides, 2):
        shape = (shapes[one], shapes[other])
        if shape not in known:
            known[shape] = _found(sides[one], sides[other])
        pairs.append(Detectable(one, other, *known[shape]))
    return pairs


def _found(one: Mapping[str, int], other: Mapping[str, int]) -> tuple[int, float | None]:
    """The tasks that two conditions share, and the difference that is found over them."""
    # Here because it loads scipy, which is slow, and the command's help needs none.
    from scheduler.report.power import assumed_spread, minimum_detectable

    shared = one.keys() & other.keys()
    counts = [side[task] for side in (one, other) for task in shared]
    # The harmonic mean, rounded down: chance shrinks with 1/k.
    k = int(len(counts) / sum(1 / count for count in counts)) if counts else 1
    return len(shared), minimum_detectable(len(shared), assumed_spread(k))


def detectable_lines(plan: Plan) -> list[str]:
    """The same in sentences, one for all pairs alike."""
    pairs = detectable(plan)
    alike: dict[str, list[Detectable]] = {}
    for pair in pairs:
        alike.setdefault(_sentence(pair), []).append(pair)
    return [f"{_who(found, len(pairs))}: {what}" for what, found in alike.items()]


def _sentence(pair: Detectable) -> str:
    tasks = counted(pair.tasks, "workflow task")
    if pair.value is None:
        return "too few workflow tasks in common to compare them"
    if pair.value > 1:
        return f"{tasks} show no difference, however large"
    points = f"{100 * pair.value:.0f} percentage points"
    return f"a difference of {points} would be found in 80 % of cases ({tasks})"


def _who(pairs: list[Detectable], of: int) -> str:
    if len(pairs) == of > 1:
        names = {name for pair in pairs for name in (pair.one, pair.other)}
        return f"any two of the {len(names)} conditions"
    shown = "; ".join(f"{pair.one} and {pair.other}" for pair in pairs[:PAIRS_SHOWN])
    more = len(pairs) - PAIRS_SHOWN
    return f"{shown} and {counted(more, 'more pair')}" if more > 0 else shown
