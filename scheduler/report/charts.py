"""The geometry of the report's pictures. Pure: numbers in, coordinates out.

Pictures are drawn in units of their own and scaled by the page; words stand beside them in
HTML, so that they keep their size on a narrow screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduler.report.summary import Summary

WIDTH, HEIGHT = 600, 200
"""Of a picture with two axes."""


@dataclass(frozen=True)
class Curve:
    """One condition's pass@k and pass^k over k."""

    condition: str
    colour: int
    """Which of the page's colours; the same for a condition everywhere."""
    at: str
    """The points of pass@k, as an SVG polyline has them."""
    all: str
    """Those of pass^k."""


@dataclass(frozen=True)
class Slice:
    """Tries of one cause within a bar."""

    blame: str
    cause: str
    tries: int
    x: float
    width: float


@dataclass(frozen=True)
class FailureBar:
    """What was not a pass under one condition, by blame and cause."""

    condition: str
    tries: int
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class CostPoint:
    """A condition's price and worth."""

    condition: str
    colour: int
    cost_usd: float
    """Of one planned attempt, over all its tries."""
    rate: float
    low: float
    high: float
    x: float
    y: float
    y_low: float
    y_high: float
    at_least: bool
    """Whether the cost of some calls is unknown."""


def curves(summary: Summary) -> tuple[tuple[Curve, ...], int]:
    """The curves of every condition that may have one, and the largest k."""
    shown = [
        (colour, each)
        for colour, each in enumerate(summary.conditions)
        if each.headline and each.workflow is not None and len(each.workflow.k) > 1
    ]
    most = max((row.k for _, each in shown if each.workflow for row in each.workflow.k), default=0)
    made = []
    for colour, each in shown:
        rows = each.workflow.k if each.workflow else ()
        places = [_across(row.k, most) for row in rows]
        made.append(
            Curve(
                condition=each.condition,
                colour=colour,
                at=_points(places, [row.pass_at for row in rows]),
                all=_points(places, [row.pass_all for row in rows]),
            )
        )
    return tuple(made), most


def failure_bars(summary: Summary) -> tuple[FailureBar, ...]:
    """A bar a condition, all to one scale; slices by blame, the largest first within one."""
    counts = {each.condition: _by_cause(summary, each.condition) for each in summary.conditions}
    most = max((sum(tries for *_, tries in rows) for rows in counts.values()), default=0)
    bars = []
    for condition, rows in counts.items():
        at, slices = 0.0, []
        for blame, cause, tries in rows:
            width = WIDTH * tries / most
            slices.append(Slice(blame, cause, tries, round(at, 1), round(width, 1)))
            at += width
        bars.append(FailureBar(condition, sum(tries for *_, tries in rows), tuple(slices)))
    return tuple(bars)


def cost_points(summary: Summary) -> tuple[tuple[CostPoint, ...], float]:
    """Score against cost of every condition with a headline, and the right end of the axis."""
    shown = [
        (colour, each, each.spent.cost_usd / each.rates.planned)
        for colour, each in enumerate(summary.conditions)
        if each.figure is not None and each.workflow is not None and each.rates.planned
    ]
    most = 1.1 * max((cost for *_, cost in shown), default=0.0)
    if not most:
        return (), 0.0
    points = []
    for colour, each, cost in shown:
        rate = each.figure or 0.0
        interval = each.workflow.interval if each.workflow else None
        low, high = (interval.low, interval.high) if interval else (rate, rate)
        points.append(
            CostPoint(
                condition=each.condition,
                colour=colour,
                cost_usd=cost,
                rate=rate,
                low=low,
                high=high,
                x=round(WIDTH * cost / most, 1),
                y=_up(rate),
                y_low=_up(low),
                y_high=_up(high),
                at_least=each.spent.unknown_cost_calls > 0,
            )
        )
    return tuple(points), most


def _by_cause(summary: Summary, condition: str) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for row in summary.causes:
        if row.condition == condition:
            key = (row.blame, row.cause)
            counts[key] = counts.get(key, 0) + row.tries
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    return [(blame, cause, tries) for (blame, cause), tries in ordered]


def _across(k: int, most: int) -> float:
    return round(WIDTH * (k - 1) / max(1, most - 1), 1)


def _up(rate: float) -> float:
    return round(HEIGHT * (1 - rate), 1)


def _points(places: Sequence[float], rates: Iterable[float]) -> str:
    return " ".join(f"{x:g},{_up(rate):g}" for x, rate in zip(places, rates, strict=True))
