from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pytest

from scheduler.series.page import render
from scheduler.series.records import read_time
from scheduler.series.trend import read_trend
from scheduler.series.trend_format import TrendRecord
from tests.scheduler.series import year
from tests.scheduler.series.memory import MemoryStore


@pytest.mark.long
def test_a_year_comes_out_as_it_was_made(tmp_path: Path) -> None:
    simulated = year.simulate(tmp_path, MemoryStore())
    world = simulated.world
    told = [*year.table(simulated), "", *year.notable(world.done)]
    sys.stdout.write("\n".join(told) + "\n")
    wanted = {(series, due): fate for series, due, fate in year.expected(world.schedules)}
    assert wanted == {
        (series, due): fate if fate in ("skipped", "missed") else "run"
        for series, fates in simulated.fates.items()
        for due, fate in fates.items()
    }
    trends = {name: read_trend(world.store, name) for name in simulated.fates}
    for name, trend in trends.items():
        runs = [due for each, due in wanted if each == name and wanted[each, due] == "run"]
        assert [each.sweep.rpartition("-")[2] for each in trend] == runs
    nightly, weekly = trends["nightly"], trends["weekly"]
    assert (len(nightly), len(weekly)) == (358, 52)

    # Each was started once; only what died or could not go on was taken up.
    again = {each for each in world.door.begun if world.door.begun.count(each) > 1}
    assert {due.date() for series, due in again if series == "nightly"} == year.CRASHES
    assert {due.date() for series, due in again if series == "weekly"} == {year.BROKEN_SUNDAY}

    # The three falls and nothing else, each in time.
    lost, weak = "buzz-native/task-01", "buzz-native/task-02"
    assert _events(nightly, "fell") == _events(nightly, "recovered") == [lost, weak]
    assert _events(weekly, "fell") == _events(weekly, "recovered") == [""]
    alarms = _days(nightly, "regression"), _days(weekly, "regression")
    for days, span, most_late in (
        (alarms[0], year.LOST, 4),
        (alarms[0], year.WEAK, 5),
        (alarms[1], year.WORSE_WEEKS, 28),
    ):
        assert (next(day for day in days if day >= span[0]) - span[0]).days <= most_late

    # The outages, as outages.
    assert _days(nightly, "outage") == sorted(year.BROKEN_NIGHTS)
    assert _days(weekly, "outage") == [year.BROKEN_SUNDAY]
    assert _days(nightly, "deadline") == [year.HANGS]

    for name, trend in trends.items():
        broken = [[change.what for change in each.breaks] for each in trend if each.breaks]
        assert broken == [["Apiary version"]]
        after = [each for each in trend if read_time(each.due) >= year.VERSION_CHANGES]
        assert all(each.judgement.across for each in after[:8] if each.counts)
        assert "line broken: Apiary version: 1.0.0 → 1.1.0" in render(name, trend)
    assert all(len(each.text.splitlines()) <= 5 for each in world.done)


def _events(trend: list[TrendRecord], kind: str) -> list[str]:
    return [test.task for each in trend for test in each.judgement.tests if test.event == kind]


def _days(trend: list[TrendRecord], outcome: str) -> list[date]:
    return [read_time(each.due).date() for each in trend if each.judgement.outcome == outcome]
