"""Stores, files and clocks that are not as a scheduler left them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from scheduler.series.runner import RunEnd
from scheduler.series.schedule_file import Schedule
from scheduler.series.trend import read_trend
from scheduler.stop import StopSignal
from tests.scheduler.manifest.builders import write_world
from tests.scheduler.series.builders import schedule, utc
from tests.scheduler.series.test_runner import NIGHT, STAMP, START, begin
from tests.scheduler.series.world import make

pytestmark = pytest.mark.long


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_world(tmp_path)
    return tmp_path


def test_what_is_none_of_ours_in_a_series_folder_ends_no_scheduler(root: Path) -> None:
    world, runner = begin(root)
    for name in ("20261399T000000Z/fate.json", "notes.txt", f"{STAMP}/claim-x.json"):
        world.store.put(f"series/nightly/runs/{name}", b"{}")
    world.store.put(f"series/nightly/runs/{STAMP}/claim-1.json~", b"{}")
    world.store.put("series/nightly/20261399T000000Z.json", b"{}")
    world.clock.step_to(NIGHT)
    (done,) = runner.tick()
    assert (done.record.judgement.outcome, runner.faults) == ("baseline", [])
    assert read_trend(world.store, "nightly") == [done.record]


def test_a_baseline_whose_sweep_was_removed_is_passed_over(root: Path) -> None:
    world, runner = begin(root)
    sweeps = []
    for night in range(3):
        world.clock.step_to(NIGHT + timedelta(days=night))
        (done,) = runner.tick()
        sweeps.append(done.record.sweep)
    for key in list(world.store.keys(f"sweeps/{sweeps[-1]}/")):
        world.store.delete(key)
    world.clock.step_to(NIGHT + timedelta(days=3))
    (done,) = runner.tick()
    assert done.record.judgement.baseline == sweeps[-2]
    for key in list(world.store.keys("sweeps/")):
        world.store.delete(key)
    world.clock.step_to(NIGHT + timedelta(days=4))
    (done,) = runner.tick()
    assert done.record.judgement.outcome == "baseline"
    assert "is not in the store any more" in done.record.judgement.reasons[0]


def test_another_zone_in_the_file_hides_no_due_time(root: Path) -> None:
    world, runner = begin(root, zone="Asia/Tokyo")
    world.clock.step_to(utc(2026, 6, 1, 17, 30))
    assert len(runner.tick()) == 1
    # On the clock of New York it is earlier than it was in Tokyo at the run before.
    world.schedules = (schedule(root, zone="America/New_York", cron='"0 20 * * *"'),)
    world.clock.step_to(utc(2026, 6, 2, 0))
    assert [done.record.due for done in world.runner().tick()] == ["2026-06-02T00:00:00Z"]


def test_a_series_that_cannot_be_read_keeps_no_other_from_being_seen(root: Path) -> None:
    broken, late = (schedule(root, series=name) for name in ("broken", "late"))
    world = make(root, START, broken, late)
    runner = world.runner()
    runner.tick()
    world.store.put("series/broken/since.json", b"{")
    assert runner.next_at() == NIGHT
    assert runner.undecided() == []
    world.clock.step_to(NIGHT)
    runner.attend()
    assert world.store.exists(f"series/late/runs/{STAMP}/seen.json")
    world.clock.pass_time(hours=3)
    assert [done.record.series for done in runner.tick()] == ["late"]
    assert [fault.partition(":")[0] for fault in runner.faults] == ["broken"]


def test_a_run_that_was_left_by_a_clock_that_is_ahead_is_taken_up(root: Path) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)

    def leave(schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd | None:
        if len(world.door.begun) > 1:
            return None
        world.clock.step_to(NIGHT + timedelta(hours=9))
        return RunEnd("infrastructure", "Docker is gone")

    world.door.during = leave
    assert runner.tick() == []
    world.clock.step_to(NIGHT + timedelta(minutes=1))
    assert [done.record.due for done in runner.tick()] == ["2026-06-02T00:30:00Z"]
