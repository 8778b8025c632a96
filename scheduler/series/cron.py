"""Due times of a cron expression in a time zone; the door to ``cronsim``. Pure.

*When the clocks change,* two rules, as in Debian's cron. A timetable of *fixed times* runs each
of them once: what falls into a gap runs at the first moment after it, and an hour that comes
twice counts the first time only. A timetable that *repeats*, because its minute or its hour begins
with ``*``, follows the wall clock: nothing in a gap, and twice in an hour that comes twice.

``cronsim`` steps over plain wall times only, and the time zone is laid over them here: its own
steps are of whole hours, which miss times where clocks change by half an hour.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim, CronSimError

DAY = timedelta(days=1)
REACH = 2 * DAY
"""Wall times are never so far from UTC, with the gap that they may fall into."""
FAR = timedelta(days=366 * 9)
"""Every expression that is ever due is due within so long: 29 February may be 8 years off."""


class CronError(ValueError):
    """A cron expression or a time zone that cannot be used; the message says why."""


class Cron:
    """A cron expression of five fields in a time zone."""

    def __init__(self, expression: str, zone: tzinfo) -> None:
        """Checks the expression.

        Raises:
            CronError: it is not of five fields, one is wrong, or it is never due.
        """
        fields = expression.split()
        if len(fields) != 5:
            raise CronError(
                f"expected five fields (minute, hour, day of month, month, day of week), "
                f"found {len(fields)}"
            )
        try:
            CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 - wall time of any zone
        except CronSimError as error:
            raise CronError(str(error)) from error
        self.expression = expression
        self.zone = zone
        self.repeats = fields[0].startswith("*") or fields[1].startswith("*")
        """Whether it follows the wall clock, in place of running each of its times once."""

    def wall(self, moment: datetime) -> datetime:
        """The wall time of a moment, without its zone."""
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The due times in ``(after, until]``, in order, in UTC.

        Args:
            after: aware.
            until: aware.
        """
        start, end = after.astimezone(UTC), until.astimezone(UTC)
        while start < end:
            stop = min(start + DAY, end)
            yield from sorted(self._within(start, stop))
            start = stop

    def next_after(self, after: datetime) -> datetime | None:
        """The first due time after a moment; None if there is none in nine years."""
        first = self._first_wall(after.astimezone(UTC))
        if first is None:
            return None
        # Walls before the first one match nothing, so that no day on the way need be looked at.
        start = max(after.astimezone(UTC), first.replace(tzinfo=UTC) - REACH)
        return next(self.between(start, start + FAR), None)

    def _first_wall(self, after: datetime) -> datetime | None:
        # Not from the wall time of now: it may come again.
        walls = CronSim(self.expression, self.wall(after).replace(second=0) - DAY)
        until = self.wall(after) + FAR
        for wall in _until(walls, until):
            if any(each > after for each in self._moments(wall)):
                return wall
        return None

    def _within(self, start: datetime, stop: datetime) -> set[datetime]:
        """Those in ``(start, stop]``, at most a day."""
        offsets = [self.wall(each) - each.replace(tzinfo=None) for each in (start, stop)]
        first = start.replace(tzinfo=None, microsecond=0) + min(offsets)
        walls = CronSim(self.expression, first - timedelta(seconds=1))
        return {
            moment
            for wall in _until(walls, stop.replace(tzinfo=None) + max(offsets))
            for moment in self._moments(wall)
            if start < moment <= stop
        }

    def _moments(self, wall: datetime) -> tuple[datetime, ...]:
        """When a wall time of the expression is due; twice, once or never."""
        early, late = (self._offset_of(wall, fold) for fold in (0, 1))
        if early == late:
            return (_utc(wall, early),)
        first, second = _utc(wall, early), _utc(wall, late)
        if early > late:  # the wall time comes twice
            return (first, second) if self.repeats else (first,)
        # It falls into a gap, which ends between the two ways to read it.
        return () if self.repeats else (self._change(second, first),)

    def _offset_of(self, wall: datetime, fold: int) -> timedelta:
        offset = wall.replace(tzinfo=self.zone, fold=fold).utcoffset()
        assert offset is not None  # of a zone
        return offset

    def _change(self, before: datetime, after: datetime) -> datetime:
        """The first second after a change of the offset between two moments."""
        low, high = before, after
        new = high.astimezone(self.zone).utcoffset()
        while high - low > timedelta(seconds=1):
            middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
            if middle.astimezone(self.zone).utcoffset() == new:
                high = middle
            else:
                low = middle
        return high


def find_zone(name: str) -> zoneinfo.ZoneInfo:
    """A time zone by its IANA name.

    Raises:
        CronError: there is none of this name.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CronError(
            f"{name!r} is no time zone of the IANA list, as Europe/Berlin is"
        ) from error


def zone_names() -> set[str]:
    """The time zones that this machine knows."""
    return zoneinfo.available_timezones()


def _until(walls: CronSim, end: datetime) -> Iterator[datetime]:
    """Wall times up to an end; none where the expression is never due again."""
    try:
        for wall in walls:
            if wall > end:
                return
            yield wall
    except (CronSimError, OverflowError):
        return


def _utc(wall: datetime, offset: timedelta) -> datetime:
    return (wall - offset).replace(tzinfo=UTC)
