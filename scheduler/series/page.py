"""A trend as one static page with a picture of every line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler.report.names import counted, short_name
from scheduler.report.tables import rate_text
from scheduler.report.transcript import visible
from scheduler.series.records import from_stamp
from scheduler.series.trend_format import TrendRecord
from scheduler.series.trend_view import Point, TrendLine, lines_of
from scheduler.templates import Templates, style

WIDTH, HEIGHT = 900, 120


@dataclass(frozen=True)
class Dot:
    """One run in a picture."""

    x: float
    y: float
    mood: str
    title: str


@dataclass(frozen=True)
class Mark:
    """A break, or a run that says nothing, in a picture."""

    x: float
    title: str


@dataclass(frozen=True)
class Picture:
    """The geometry of one line; words stand beside it."""

    line: TrendLine
    bands: tuple[str, ...]
    """Points of a polygon for each segment: the 95 % intervals."""
    paths: tuple[str, ...]
    """Points of a polyline for each segment."""
    dots: tuple[Dot, ...]
    breaks: tuple[Mark, ...]
    gaps: tuple[Mark, ...]


def render(series: str, trend: Sequence[TrendRecord]) -> str:
    """The page of a series.

    Args:
        series: its name.
        trend: its lines in order, at least one.
    """
    lines = lines_of(trend)
    filters: dict[str, Callable[..., Any]] = {
        "visible": visible,
        "rate": rate_text,
        "short": short_name,
        "counted": counted,
    }
    first, last = (datetime.fromisoformat(trend[place].due) for place in (0, -1))
    return Templates("scheduler.series", filters).render(
        "page.html",
        style=style(),
        series=series,
        trend=trend[::-1],
        first=f"{first:%Y-%m-%d}",
        last=f"{last:%Y-%m-%d}",
        width=WIDTH,
        height=HEIGHT,
        pictures=[picture(line, first, last) for line in lines],
        outcomes=_outcomes(trend),
    )


def picture(line: TrendLine, first: datetime, last: datetime) -> Picture:
    """The geometry of a line between the first and the last run of its series."""
    span = max((last - first).total_seconds(), 1.0)

    def x(point: Point) -> float:
        return round(WIDTH * (from_stamp(point.stamp) - first).total_seconds() / span, 1)

    def y(rate: float) -> float:
        return round(HEIGHT * (1.0 - rate), 1)

    bands, paths = [], []
    for segment in line.segments:
        shown = [each for each in segment if each.rate is not None]
        paths.append(" ".join(f"{x(each)},{y(each.rate or 0.0)}" for each in shown))
        edges = [
            *((x(each), y(each.high)) for each in shown if each.high is not None),
            *((x(each), y(each.low)) for each in reversed(shown) if each.low is not None),
        ]
        bands.append(" ".join(f"{across},{up}" for across, up in edges))
    return Picture(
        line=line,
        bands=tuple(each for each in bands if each),
        paths=tuple(each for each in paths if each),
        dots=tuple(
            Dot(x(each), y(each.rate), "fail" if each.fallen else "ok", _title(each, each.rate))
            for each in line.points
            if each.rate is not None
        ),
        breaks=tuple(
            Mark(x(each), f"{each.stamp}: {'; '.join(each.breaks)}")
            for each in line.points
            if each.breaks
        ),
        gaps=tuple(
            Mark(x(each), f"{each.stamp}: {each.outcome}")
            for each in line.points
            if each.rate is None
        ),
    )


def _title(point: Point, rate: float) -> str:
    return f"{point.stamp}: {rate:.1%}, {point.outcome}"


def _outcomes(trend: Sequence[TrendRecord]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for each in trend:
        counts[each.judgement.outcome] = counts.get(each.judgement.outcome, 0) + 1
    return sorted(counts.items(), key=lambda pair: -pair[1])
