"""What is to be done about a series' due times: (timetable, history, now) -> Decision. Pure.

Every due time after the series began comes to exactly one fate: a run, or ``skipped`` (another run
was at work), or ``missed`` (nobody was there in time, and it is not caught up). A due time is *in
time* if a scheduler saw it within the grace after its start; it may then wait for as long as it
must. Times of day are compared in UTC, durations of runs by the times that stand in the store.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from scheduler.series.cron import Cron
from scheduler.series.schedule_file import Schedule, seconds

MOST_PENDING = 1000
"""Due times that are looked at in one go; of more, the older ones leave no trace."""
MOST_CLAIMS = 5
"""A run is taken up so often; then it counts as an outage."""
RETRY = timedelta(minutes=5)
"""Until a run that could not be driven is taken up again."""
CLOCK_SLIP = timedelta(days=1)
"""A fate that lies further ahead than this was settled by a clock that was wrong."""


@dataclass(frozen=True)
class Timetable:
    """The rules of a series."""

    series: str
    cron: Cron
    jitter: timedelta
    overlap: Literal["skip", "queue", "cancel"]
    catch_up: Literal["none", "last", "all"]
    within: timedelta
    grace: timedelta
    deadline: timedelta

    def starts_at(self, due: datetime) -> datetime:
        """When a due time's run starts: later by the jitter that it always has."""
        span = int(self.jitter.total_seconds()) + 1
        text = f"{self.series}/{due:%Y%m%dT%H%M%SZ}"
        digest = hashlib.sha256(text.encode()).digest()
        return due + timedelta(seconds=int.from_bytes(digest[:8]) % span)


@dataclass(frozen=True)
class Held:
    """A run that has begun and has no end yet."""

    due: datetime
    began_at: datetime
    """When it was claimed first."""
    claims: int
    alive: bool
    """Whether somebody may be at work on it."""
    retry_at: datetime | None = None
    """Where nobody is: when it may be taken up again; null: at once."""
    cancel_asked: bool = False


@dataclass(frozen=True)
class History:
    """What the store knows of a series."""

    since: datetime
    """When the series was first seen; nothing before is due."""
    decided: frozenset[datetime] = frozenset()
    """Due times that have a fate."""
    last_wall: datetime | None = None
    """The wall time of the latest of them (``latest_decided``), as it was then; null also where
    that was in another zone, whose wall times tell nothing."""
    seen: frozenset[datetime] = frozenset()
    """Due times that were seen in time."""
    held: Held | None = None


@dataclass(frozen=True)
class Decision:
    """What is to be done now, in the order of the fields."""

    give_up: Literal["deadline", "cancelled", "outage"] | None = None
    """How the held run ends: nobody is at work on it, and nobody will be."""
    cancel: Literal["deadline", "cancelled"] | None = None
    """Why whoever is at work on the held run is asked to end it."""
    missed: tuple[datetime, ...] = ()
    skipped: tuple[datetime, ...] = ()
    see: tuple[datetime, ...] = ()
    """Due times that are in time and must wait."""
    resume: datetime | None = None
    """A held run that is taken up again."""
    start: datetime | None = None


def timetable_of(schedule: Schedule) -> Timetable:
    """The rules of a schedule file."""
    file = schedule.file
    return Timetable(
        series=file.series,
        cron=schedule.cron,
        jitter=seconds(file.jitter),
        overlap=file.overlap,
        catch_up=file.catch_up,
        within=seconds(file.catch_up_within),
        grace=seconds(file.grace),
        deadline=seconds(file.deadline),
    )


def decide(table: Timetable, history: History, now: datetime) -> Decision:
    """What is to be done at a moment."""
    pending = pending_dues(table, history, now)
    ready = [(due, at) for due, at in _starts(table, pending) if at <= now]
    kept, missed = _kept(table, history, ready, now)
    held = history.held
    give_up, cancel, resume = _of_held(table, held, bool(kept), now)
    start: datetime | None = None
    skipped: list[datetime] = []
    see: list[datetime] = []
    if held is not None and give_up is None:
        if table.overlap == "skip":
            skipped = kept
        else:
            see = kept
    elif kept:
        if table.overlap == "queue":
            start, *see = kept
        else:
            *skipped, start = kept
    return Decision(
        give_up=give_up,
        cancel=cancel,
        missed=tuple(missed),
        skipped=tuple(skipped),
        see=tuple(due for due in see if due not in history.seen),
        resume=resume,
        start=start,
    )


def pending_dues(table: Timetable, history: History, now: datetime) -> list[datetime]:
    """The due times up to now that have no fate yet, the latest ``MOST_PENDING`` of them."""
    latest = latest_decided(history.decided, now)
    floor = history.since if latest is None else max(latest, history.since)
    found: deque[datetime] = deque(maxlen=MOST_PENDING)
    for due in table.cron.between(floor, now):
        if due in history.decided:
            continue
        # Where the zone's rules have changed since, a time that had its run may seem due again.
        if (
            table.cron.repeats
            or history.last_wall is None
            or (table.cron.wall(due) > history.last_wall)
        ):
            found.append(due)
    waiting = [due for due in history.seen if due <= floor and due not in history.decided]
    return sorted(waiting) + list(found)


def latest_decided(decided: Iterable[datetime], now: datetime) -> datetime | None:
    """The latest due time with a fate, after which is looked for others; None: there is none.

    A clock that was years ahead for a while has settled fates of years to come: they stand, and
    keep nothing before them from being due.
    """
    return max((due for due in decided if due <= now + CLOCK_SLIP), default=None)


def _starts(table: Timetable, pending: Sequence[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """When the run of each due time starts: none before one that is due earlier.

    Jitter may be longer than the time between two due times. One that overtook another would
    hide it, since only what is due after the latest fate is looked at.
    """
    latest: datetime | None = None
    for due in pending:
        at = table.starts_at(due)
        latest = at if latest is None else max(latest, at)
        yield due, latest


def _kept(
    table: Timetable,
    history: History,
    ready: Sequence[tuple[datetime, datetime]],
    now: datetime,
) -> tuple[list[datetime], list[datetime]]:
    """Those that a run may come of, and those that were missed."""
    kept: list[datetime] = []
    missed: list[datetime] = []
    for due, start in ready:
        caught_up = table.catch_up == "all" or (table.catch_up == "last" and due == ready[-1][0])
        in_time = due in history.seen or now <= start + table.grace
        late = caught_up and now - due <= table.within
        (kept if in_time or late else missed).append(due)
    return kept, missed


def _of_held(
    table: Timetable, held: Held | None, wanted: bool, now: datetime
) -> tuple[
    Literal["deadline", "cancelled", "outage"] | None,
    Literal["deadline", "cancelled"] | None,
    datetime | None,
]:
    """(How it is given up, why it is cancelled, whether it is taken up) of the held run."""
    if held is None:
        return None, None, None
    why: Literal["deadline", "cancelled"] | None = None
    if now >= held.began_at + table.deadline:
        why = "deadline"
    elif held.cancel_asked or (wanted and table.overlap == "cancel"):
        why = "cancelled"
    if held.alive:
        return None, None if held.cancel_asked else why, None
    if why is None and held.claims >= MOST_CLAIMS:
        return "outage", None, None
    if why is not None:
        return why, None, None
    return None, None, held.due if held.retry_at is None or now >= held.retry_at else None


def next_at(table: Timetable, history: History, now: datetime) -> datetime | None:
    """When the clock alone may change the answer, as things stand; None: never."""
    pending = pending_dues(table, history, now)
    times = [at for _, at in _starts(table, pending) if at > now]
    upcoming = table.cron.next_after(max(now, history.since))
    if upcoming is not None:
        times.append(table.starts_at(upcoming))
    if history.held is not None:
        times.append(history.held.began_at + table.deadline)
        if history.held.retry_at is not None:
            times.append(history.held.retry_at)
    return min((at for at in times if at > now), default=None)
