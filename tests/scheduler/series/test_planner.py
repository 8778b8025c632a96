from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.series.cron import find_zone
from scheduler.series.planner import (
    Decision,
    Held,
    History,
    Timetable,
    decide,
    latest_decided,
    next_at,
)
from tests.scheduler.series.brute import MINUTE, dues
from tests.scheduler.series.builders import timetable, utc

START = utc(2026, 3, 28, 6)


@dataclass
class World:
    """A scheduler that lives in a store; runs take as long as they are given."""

    table: Timetable
    lasts: dict[int, int]
    """Number of a run to its minutes; others take none."""
    history: History
    fates: dict[datetime, str] = field(default_factory=dict)
    ends: dict[datetime, datetime] = field(default_factory=dict)
    """Runs that are at work, and when they will be done."""

    def pass_time(self, now: datetime) -> None:
        held = self.history.held
        if held is not None and self.ends[held.due] <= now:
            self.history = replace(self.history, held=None)

    def look(self, now: datetime) -> Decision:
        self.pass_time(now)
        decision = decide(self.table, self.history, now)
        if decision.cancel is not None and self.history.held is not None:
            due = self.history.held.due
            self.fates[due] += f", {decision.cancel} {_at(now)}"
            self.ends[due] = now  # its runner ends it at once
            self.pass_time(now)
            return self.look(now)
        for due in decision.missed:
            self._settle(due, "missed")
        for due in decision.skipped:
            self._settle(due, "skipped")
        self.history = replace(self.history, seen=self.history.seen | {*decision.see})
        if decision.start is not None:
            due = decision.start
            self._settle(due, f"run {_at(now)}")
            number = sum(text.startswith("run") for text in self.fates.values())
            self.ends[due] = now + timedelta(minutes=self.lasts.get(number, 0))
            self.history = replace(self.history, held=Held(due, now, 1, alive=True))
            self.look(now)
        return decision

    def _settle(self, due: datetime, fate: str) -> None:
        assert due not in self.fates, "a due time has one fate"
        self.fates[due] = fate
        decided = self.history.decided | {due}
        wall = self.table.cron.wall(latest_decided(decided, due) or due)
        self.history = replace(self.history, decided=decided, last_wall=wall)


def expected(
    table: Timetable, lasts: dict[int, int], looks: list[datetime], until: datetime
) -> dict[datetime, str]:
    """The fates by going through every minute; written against the words of the format."""
    calendar = set(dues(table.cron.expression, table.cron.zone, START, until))
    awake = set(looks)
    fates: dict[datetime, str] = {}
    open_dues: list[datetime] = []
    seen: set[datetime] = set()
    at_work: tuple[datetime, datetime, datetime] | None = None  # due, began, done
    runs = 0
    now = START
    while now <= until:
        if now in calendar:
            open_dues.append(now)
        if at_work is not None and at_work[2] <= now:
            at_work = None
        if now in awake:
            if at_work is not None and now >= at_work[1] + table.deadline:
                fates[at_work[0]] += f", deadline {_at(now)}"
                at_work = None
            ready = [due for due in open_dues if table.starts_at(due) <= now]
            usable = []
            for due in ready:
                fresh = due in seen or now - table.starts_at(due) <= table.grace
                old = now - due > table.within
                last = due == ready[-1]
                wanted = {"none": False, "last": last, "all": True}[table.catch_up]
                if fresh or (wanted and not old):
                    usable.append(due)
                else:
                    fates[due] = "missed"
                    open_dues.remove(due)
            if usable and at_work is not None and table.overlap == "cancel":
                fates[at_work[0]] += f", cancelled {_at(now)}"
                at_work = None
            if at_work is not None and table.overlap == "skip":
                for due in usable:
                    fates[due] = "skipped"
                    open_dues.remove(due)
                usable = []
            while usable and at_work is None:
                if table.overlap != "queue":
                    for due in usable[:-1]:
                        fates[due] = "skipped"
                        open_dues.remove(due)
                    usable = usable[-1:]
                due = usable.pop(0)
                runs += 1
                fates[due] = f"run {_at(now)}"
                open_dues.remove(due)
                length = timedelta(minutes=lasts.get(runs, 0))
                at_work = (due, now, now + length) if length else None
            seen |= {*usable}
        now += MINUTE
    return fates


def _at(moment: datetime) -> str:
    return f"{moment:%d %H:%M}"


@st.composite
def _tables(draw: st.DrawFn) -> Timetable:
    overlap = draw(st.sampled_from(["skip", "queue", "cancel"]))
    ways = ["none", "last", "all"] if overlap == "queue" else ["none", "last"]
    zone = draw(st.sampled_from(["Europe/Berlin", "UTC", "Australia/Lord_Howe"]))
    expression = draw(
        st.sampled_from(
            ["0 * * * *", "*/20 * * * *", "30 2 * * *", "15,45 1-4 * * *", "0 */3 * * *"]
        )
    )
    return timetable(
        expression,
        find_zone(zone),
        overlap=overlap,
        catch_up=draw(st.sampled_from(ways)),
        within=timedelta(minutes=draw(st.sampled_from([30, 180, 3000]))),
        grace=timedelta(minutes=draw(st.sampled_from([0, 5, 15, 70]))),
        jitter=timedelta(minutes=draw(st.sampled_from([0, 0, 10]))),
        deadline=timedelta(minutes=draw(st.sampled_from([45, 100, 3000]))),
    )


_lengths = st.dictionaries(st.integers(1, 30), st.sampled_from([1, 10, 25, 70, 200, 900]))
_sleeps = st.lists(
    st.tuples(st.integers(0, 2600), st.sampled_from([3, 12, 40, 200, 1500])), max_size=4
)


@pytest.mark.long
@settings(deadline=None)
@given(_tables(), _lengths, _sleeps)
def test_every_fate_is_that_of_going_minute_by_minute(
    table: Timetable, lasts: dict[int, int], sleeps: list[tuple[int, int]]
) -> None:
    until = START + timedelta(minutes=2800)
    minutes = int((until - START) / MINUTE)
    asleep = {minute for start, length in sleeps for minute in range(start, start + length)}
    looks = [START + n * MINUTE for n in range(minutes + 1) if n not in asleep]
    # Jitter is of seconds: here by whole minutes, so that minutes can tell it.
    table = _by_minutes(table)
    wanted = expected(table, lasts, looks, until)
    patient = World(table, lasts, History(since=START))
    for moment in looks:
        patient.look(moment)
    assert patient.fates == wanted
    assert _lazy(table, lasts, looks, until) == wanted


def _lazy(
    table: Timetable, lasts: dict[int, int], looks: list[datetime], until: datetime
) -> dict[datetime, str]:
    """As a scheduler that sleeps until something may have to be done."""
    world = World(table, lasts, History(since=START))
    wake: datetime | None = START
    for moment in looks:
        held = world.history.held
        ends = None if held is None else world.ends[held.due]
        if (wake is not None and moment >= wake) or (ends is not None and moment >= ends):
            world.look(moment)
            wake = next_at(table, world.history, moment)
    return world.fates


def _by_minutes(table: Timetable) -> Timetable:
    class Whole(Timetable):
        def starts_at(self, due: datetime) -> datetime:
            return super().starts_at(due).replace(second=0)

    return Whole(**{name: getattr(table, name) for name in table.__dataclass_fields__})


def test_nothing_before_the_series_began_is_due() -> None:
    table = timetable(catch_up="all", overlap="queue")
    assert (
        decide(table, History(since=utc(2026, 1, 1, 12, 30)), utc(2026, 1, 1, 12, 59)).start is None
    )


def test_a_week_asleep_gives_one_run_and_six_that_were_missed() -> None:
    table = timetable("0 2 * * *", catch_up="last", grace=timedelta())
    decision = decide(table, History(since=utc(2026, 1, 1)), utc(2026, 1, 7, 12))
    assert decision.start == utc(2026, 1, 7, 2)
    assert decision.missed == tuple(utc(2026, 1, day, 2) for day in range(1, 7))


def test_a_clock_that_steps_back_starts_nothing_twice() -> None:
    table = timetable()
    due = utc(2026, 1, 1, 12)
    history = History(utc(2026, 1, 1), frozenset({due}), table.cron.wall(due))
    for minutes in (-600, -61, -1, 0, 59):
        assert decide(table, history, due + timedelta(minutes=minutes)).start is None
    assert decide(table, history, utc(2026, 1, 1, 13)).start == utc(2026, 1, 1, 13)


def test_a_zone_whose_rules_change_runs_a_night_once() -> None:
    night = utc(2026, 5, 1, 1)  # 02:00 at one hour ahead
    before = timetable("0 2 * * *", timezone(timedelta(hours=1)))
    history = History(utc(2026, 4, 1), frozenset({night}), before.cron.wall(night))
    behind = timetable("0 2 * * *", UTC, catch_up="last")
    assert decide(behind, history, utc(2026, 5, 1, 12)).start is None
    assert decide(behind, history, utc(2026, 5, 2, 2)).start == utc(2026, 5, 2, 2)
    ahead = timetable("0 2 * * *", timezone(timedelta(hours=2)))
    assert decide(ahead, history, utc(2026, 5, 2, 0)).start == utc(2026, 5, 2, 0)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ({"alive": False}, Decision(resume=utc(2026, 1, 1, 12))),
        ({"alive": False, "retry_at": utc(2026, 1, 1, 13)}, Decision()),
        ({"alive": False, "claims": 5}, Decision(give_up="outage")),
        ({"alive": False, "cancel_asked": True}, Decision(give_up="cancelled")),
        ({"alive": True}, Decision()),
        ({"alive": True, "began_at": utc(2026, 1, 1, 9)}, Decision(cancel="deadline")),
        ({"alive": False, "began_at": utc(2026, 1, 1, 9)}, Decision(give_up="deadline")),
    ],
)
def test_a_run_without_an_end(held: dict[str, Any], wanted: Decision) -> None:
    due = utc(2026, 1, 1, 12)
    values: dict[str, Any] = {"due": due, "began_at": due, "claims": 1, **held}
    table = timetable(deadline=timedelta(hours=2))
    history = History(utc(2026, 1, 1), frozenset({due}), table.cron.wall(due), held=Held(**values))
    assert decide(table, history, utc(2026, 1, 1, 12, 30)) == wanted


def test_a_run_that_nobody_drives_gives_way_to_the_next_at_once() -> None:
    due = utc(2026, 1, 1, 12)
    held = Held(due, due, 1, alive=False)
    history = History(due, frozenset({due}), None, held=held)
    decision = decide(timetable(overlap="cancel"), history, utc(2026, 1, 1, 13))
    assert (decision.give_up, decision.start) == ("cancelled", utc(2026, 1, 1, 13))


def test_jitter_is_the_same_everywhere_and_spread() -> None:
    table = timetable(jitter=timedelta(minutes=10))
    dues_of_a_week = list(table.cron.between(utc(2026, 1, 1), utc(2026, 1, 8)))
    late = [(table.starts_at(due) - due).total_seconds() for due in dues_of_a_week]
    assert late == [(table.starts_at(due) - due).total_seconds() for due in dues_of_a_week]
    assert 0 <= min(late) < 60 and 540 < max(late) <= 600


def test_jitter_longer_than_the_time_between_two_due_times_hides_none() -> None:
    begun, minutes = utc(2026, 1, 1), 3 * 60
    table = timetable("*/5 * * * *", jitter=timedelta(minutes=30), grace=timedelta(minutes=1))
    world = World(table, {}, History(since=begun))
    for minute in range(minutes):
        world.look(begun + minute * MINUTE + timedelta(seconds=59))
    dues_of_them = list(table.cron.between(begun, begun + timedelta(minutes=minutes - 31)))
    assert [due for due in dues_of_them if due not in world.fates] == []
    # Somebody looked every minute, so that none of them was missed.
    assert {world.fates[due].partition(" ")[0] for due in dues_of_them} == {"run", "skipped"}


def test_a_clock_that_was_years_ahead_for_a_while_silences_no_series() -> None:
    table = timetable(catch_up="last")
    begun = utc(2026, 1, 1, 11, 30)
    world = World(table, {}, History(since=begun))
    world.look(utc(2036, 1, 1, 12))
    assert world.fates[utc(2036, 1, 1, 12)].startswith("run")
    ahead = dict(world.fates)
    assert world.look(utc(2026, 1, 1, 12)).start == utc(2026, 1, 1, 12)
    assert world.look(utc(2026, 1, 1, 12, 30)).start is None
    assert next_at(table, world.history, utc(2026, 1, 1, 12, 30)) == utc(2026, 1, 1, 13)
    # What it settled stands: nothing runs twice once the time has come.
    assert world.look(utc(2036, 1, 1, 12, 1)).start is None
    assert {due: fate for due, fate in world.fates.items() if due in ahead} == ahead
