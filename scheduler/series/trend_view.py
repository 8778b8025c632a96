"""A trend as lines of points, parted where something has changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scheduler.report.names import short_name
from scheduler.series.records import read_time, stamp
from scheduler.series.trend_format import TrendCondition, TrendRecord

BARS = "▁▂▃▄▅▆▇█"
NOTHING = "·"
BROKEN = "┊"


@dataclass(frozen=True)
class Point:
    """One run of one line."""

    stamp: str
    sweep: str
    rate: float | None
    """Null: the run says nothing of it."""
    low: float | None
    high: float | None
    """Of the 95 % interval."""
    outcome: str
    fallen: bool
    """Whether an alarm of this line stands."""
    breaks: tuple[str, ...]
    """What is another one than in the run before: the line is parted in front of it."""


@dataclass(frozen=True)
class TrendLine:
    """The workflow mean of a condition, or one of its tasks, over the runs."""

    condition: str
    task: str
    """Empty: the mean over the workflow tasks."""
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """For people."""
        return f"{short_name(self.task) if self.task else 'workflow'} · {self.condition}"

    @property
    def segments(self) -> tuple[tuple[Point, ...], ...]:
        """The points between breaks."""
        found: list[list[Point]] = [[]]
        for point in self.points:
            if point.breaks and found[-1]:
                found.append([])
            found[-1].append(point)
        return tuple(tuple(each) for each in found)

    @property
    def last(self) -> Point | None:
        """The latest point with a rate."""
        return next((each for each in reversed(self.points) if each.rate is not None), None)


def lines_of(trend: Sequence[TrendRecord]) -> tuple[TrendLine, ...]:
    """Every line of a trend: of each condition the workflow mean, then its tasks."""
    names: dict[tuple[str, str], None] = {}
    for record in trend:
        for condition in record.conditions:
            if condition.workflow is not None:
                names[(condition.condition, "")] = None
    for record in trend:
        for condition in record.conditions:
            names.update({(condition.condition, cell.task): None for cell in condition.cells})
    return tuple(
        TrendLine(condition, task, tuple(_points(trend, condition, task)))
        for condition, task in names
    )


def sparkline(line: TrendLine) -> str:
    """A line as a row of bars: ``·`` a run that says nothing, ``┊`` a break."""
    signs = []
    for point in line.points:
        if point.breaks:
            signs.append(BROKEN)
        signs.append(NOTHING if point.rate is None else _bar(point.rate))
    return "".join(signs)


def _bar(rate: float) -> str:
    return BARS[min(len(BARS) - 1, int(rate * len(BARS)))]


def _points(trend: Sequence[TrendRecord], condition: str, task: str) -> Iterator[Point]:
    for record in trend:
        found = next((each for each in record.conditions if each.condition == condition), None)
        rate, low, high = _rate(found, task) if record.counts else (None, None, None)
        yield Point(
            stamp=stamp(read_time(record.due)),
            sweep=record.sweep,
            rate=rate,
            low=low,
            high=high,
            outcome=record.judgement.outcome,
            fallen=any(
                test.fallen_since is not None
                for test in record.judgement.tests
                if (test.condition, test.task) == (condition, task)
            ),
            breaks=tuple(
                each.text
                for each in record.breaks
                if each.what not in ("task", "condition", "image")
                or each.name in ("", "base", condition, task)
                or not task
            ),
        )


def _rate(
    condition: TrendCondition | None, task: str
) -> tuple[float | None, float | None, float | None]:
    if condition is None:
        return None, None, None
    if not task:
        rate, interval = condition.workflow, condition.interval
    else:
        cell = next((each for each in condition.cells if each.task == task), None)
        rate, interval = (None, None) if cell is None else (cell.rate, cell.interval)
    if rate is None or interval is None:
        return rate, None, None
    return rate, interval.low, interval.high
