from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.series.cron import Cron, CronError, find_zone
from tests.scheduler.series.brute import dues

CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 3, 8, 5, tzinfo=UTC)),  # at midnight
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),  # by half an hour
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # a whole day was left out
    ("Asia/Pyongyang", datetime(2015, 8, 14, 15, tzinfo=UTC)),  # its rules changed
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),
    ("UTC", datetime(2028, 2, 29, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2026, 12, 31, 18, 15, tzinfo=UTC)),
]

_minutes = st.sampled_from(["0", "30", "15,45", "*", "*/20", "59", "0-10/5", "5/25"])
_hours = st.sampled_from(["*", "2", "1,2,3", "0", "*/2", "23", "1-3", "3"])
_days = st.sampled_from(["*", "*", "29", "1,15,29", "*/2", "31"])
_months = st.sampled_from(["*", "*", "2,3,10,11,12", "8"])
_weekdays = st.sampled_from(["*", "*", "0", "7", "1-5", "3,6"])
_expressions = st.tuples(_minutes, _hours, _days, _months, _weekdays).map(" ".join)


@given(st.sampled_from(CHANGES), _expressions, st.integers(-2000, 1000), st.integers(1, 3000))
@example(CHANGES[0], "30 2 * * *", -1500, 3000)
@example(CHANGES[5], "*/10 3 * * *", -1500, 3000)
@settings(deadline=None)
@pytest.mark.long
def test_due_times_are_those_of_every_minute(
    change: tuple[str, datetime], expression: str, start: int, length: int
) -> None:
    zone = find_zone(change[0])
    after = change[1] + timedelta(minutes=start, seconds=17)
    until = after + timedelta(minutes=length)
    cron = Cron(expression, zone)
    wanted = list(dues(expression, zone, after, until))
    assert list(cron.between(after, until)) == wanted
    following = cron.next_after(after)
    if wanted:
        assert following == wanted[0]
    else:
        assert following is None or following > until


def test_a_fixed_time_in_a_gap_runs_right_after_it_and_a_doubled_hour_once() -> None:
    cron = Cron("30 2 * * *", find_zone("Europe/Berlin"))
    spring = list(cron.between(_utc(3, 28, 12), _utc(3, 30, 12)))
    assert spring == [_utc(3, 29, 1), _utc(3, 30, 0, 30)]
    autumn = list(cron.between(_utc(10, 24, 12), _utc(10, 26, 12)))
    assert autumn == [_utc(10, 25, 0, 30), _utc(10, 26, 1, 30)]


def test_a_repeating_time_follows_the_wall_clock() -> None:
    cron = Cron("*/30 2 * * *", find_zone("Europe/Berlin"))
    assert not list(cron.between(_utc(3, 28, 12), _utc(3, 29, 12)))
    assert len(list(cron.between(_utc(10, 24, 12), _utc(10, 25, 12)))) == 4


def test_a_leap_day_is_found_however_far_it_is() -> None:
    cron = Cron("0 12 29 2 *", UTC)
    assert cron.next_after(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(
        2104, 2, 29, 12, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("30 2 * *", "five fields"),
        ("0 30 2 * * *", "five fields"),
        ("61 2 * * *", "Bad minute"),
        ("0 0 31 2 *", "Bad day-of-month"),
        ("@daily", "five fields"),
    ],
)
def test_what_is_wrong_is_said(expression: str, told: str) -> None:
    with pytest.raises(CronError, match=told):
        Cron(expression, UTC)


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../etc/passwd", "CET+1x"])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(CronError, match="time zone"):
        find_zone(name)


def _utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)
