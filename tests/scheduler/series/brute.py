"""Due times and fates by the simplest means there are: minute by minute, without ``cronsim``."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


@functools.cache
def values(field: str, low: int, high: int) -> frozenset[int]:
    """A field of numbers, ``*``, lists, ranges and steps."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start, end = (low, high) if span == "*" else (int(first), int(last or first))
        if step and not last and span != "*":
            end = high
        found |= set(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def matches(expression: str, wall: datetime) -> bool:
    """Whether a wall time is one of the expression's."""
    fields = expression.split()
    minute, hour, day, month, weekday = (
        values(field, *span) for field, span in zip(fields, RANGES, strict=True)
    )
    by_day = wall.day in day
    by_weekday = bool({wall.isoweekday(), wall.isoweekday() % 7} & weekday)
    either = fields[2][0] != "*" and fields[4][0] != "*"
    days = by_day or by_weekday if either else by_day and by_weekday
    return wall.minute in minute and wall.hour in hour and wall.month in month and days


def dues(expression: str, zone: tzinfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """In ``(after, until]``; clocks change on whole minutes."""
    repeats = expression[0] == "*" or expression.split()[1][0] == "*"
    moment = after.replace(second=0, microsecond=0)
    before = (moment - MINUTE).astimezone(zone).replace(tzinfo=None)
    while moment <= until:
        local = moment.astimezone(zone)
        wall = local.replace(tzinfo=None, fold=0)
        due = matches(expression, wall) and (repeats or local.fold == 0)
        if not repeats:
            jumped = before + MINUTE
            while jumped < wall:  # the clock went forward: what it passed over is due now
                due = due or matches(expression, jumped)
                jumped += MINUTE
        before = wall
        if due and after < moment:
            yield moment.astimezone(UTC)
        moment += MINUTE
