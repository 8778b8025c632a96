from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from scheduler.errors import ClusterError
from scheduler.series.keeper import Keeper, RunStop
from scheduler.series.runner import RunEnd, Runner, SchedulerClockError
from scheduler.series.schedule_file import Schedule
from scheduler.series.trend import read_trend
from scheduler.stop import StopSignal
from tests.scheduler.manifest.builders import write_world
from tests.scheduler.series.builders import schedule, utc
from tests.scheduler.series.world import Clock, Crash, World, make

pytestmark = pytest.mark.long

START = utc(2026, 6, 1, 12)
NIGHT = utc(2026, 6, 2, 0, 30)
"""02:30 in Berlin."""
STAMP = "20260602T003000Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_world(tmp_path)
    return tmp_path


def begin(root: Path, more: str = "", **fields: str) -> tuple[World, Runner]:
    world = make(root, START, schedule(root, more, **fields))
    runner = world.runner()
    assert runner.tick() == []
    return world, runner


def test_a_night_runs_once_and_leaves_a_line(root: Path) -> None:
    world, runner = begin(root)
    assert runner.next_at() == NIGHT
    world.clock.step_to(NIGHT)
    (done,) = runner.tick()
    assert runner.tick() == []
    assert world.door.begun == [("nightly", NIGHT)]
    assert done.record.sweep == f"nightly-{STAMP}"
    assert (done.record.judgement.outcome, done.exit_code) == ("baseline", 0)
    assert world.fates("nightly") == {STAMP: "baseline"}
    (record,) = read_trend(world.store, "nightly")
    assert record == done.record
    (condition,) = record.conditions
    assert [cell.rate for cell in condition.cells] == [1.0, 1.0]
    assert record.surroundings is not None and record.surroundings.agent.startswith("reference:")


def test_a_crash_is_taken_up_again_and_not_started_anew(root: Path) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)

    def crash(schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd | None:
        if len(world.door.begun) == 1:
            raise Crash
        return None

    world.door.during = crash
    with pytest.raises(Crash):
        runner.tick()
    other = world.runner()
    assert other.tick() == [] and other.undecided() == [("nightly", NIGHT)]
    world.clock.pass_time(seconds=31)
    (done,) = other.tick()
    assert world.door.begun == [("nightly", NIGHT)] * 2
    assert done.record.sweep == f"nightly-{STAMP}"
    assert list(world.fates("nightly")) == [STAMP]


def test_a_runner_that_lives_is_left_alone(root: Path) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)
    other = world.runner()
    seen: list[bool] = []

    def at_work(schedule: Schedule, due: datetime, stop: StopSignal) -> None:
        for beat in range(2, 12):
            assert other.tick() == []
            seen.append(not other.undecided())
            world.clock.pass_time(seconds=20)
            runner.lines[0].ledger.beat(due, 1, beat)

    world.door.during = at_work
    assert len(runner.tick()) == 1
    assert seen == [False, *[True] * 9]
    assert len(world.door.begun) == 1


@pytest.mark.parametrize("machines", [2, 6])
def test_many_schedulers_start_a_night_exactly_once(root: Path, machines: int) -> None:
    world, _ = begin(root, cron='"*/30 * * * *"')
    gate = threading.Barrier(machines)

    def tick(runner: Runner) -> int:
        gate.wait(20.0)
        return len(runner.tick())

    with ThreadPoolExecutor(machines) as pool:
        for night in range(6):
            world.clock.step_to(START + timedelta(minutes=30 * (night + 1)))
            runners = [world.runner() for _ in range(machines)]
            assert sum(pool.map(tick, runners, timeout=60.0)) == 1
    assert sorted(world.door.begun) == [
        ("nightly", START + timedelta(minutes=30 * (night + 1))) for night in range(6)
    ]
    assert len(read_trend(world.store, "nightly")) == 6


def test_what_the_operator_interrupts_goes_on_at_the_next_look(root: Path) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)
    answers = iter([RunEnd("interrupted", "Ctrl-C"), None])
    world.door.during = lambda schedule, due, stop: next(answers)
    (done,) = runner.tick()
    assert done.record.judgement.outcome == "baseline"
    assert "interrupted" in " ".join(world.notes)


def test_an_outage_is_tried_five_times_and_is_no_regression(root: Path) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)

    def broken(schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd:
        raise ClusterError("Ray is gone")

    world.door.during = broken
    for _ in range(40):
        runner.tick()
        world.clock.pass_time(minutes=1)
    assert len(world.door.begun) == 5
    (done,) = world.done
    assert (done.record.judgement.outcome, done.exit_code) == ("outage", 5)
    assert "Ray is gone" in done.text


def test_a_run_past_its_deadline_is_ended(root: Path) -> None:
    world, runner = begin(root, "deadline: 2h\n")
    world.clock.step_to(NIGHT)
    other = world.runner()

    def long(schedule: Schedule, due: datetime, stop: StopSignal) -> None:
        world.clock.pass_time(minutes=119)
        other.attend()
        assert runner.lines[0].ledger.asked_to_end(due) is None
        world.clock.pass_time(minutes=1)
        runner.lines[0].ledger.beat(due, 1, 2)
        other.attend()
        assert runner.lines[0].ledger.asked_to_end(due) == "deadline"
        stop.request()
        stop.request()

    world.door.during = long
    (done,) = runner.tick()
    assert (done.record.judgement.outcome, done.exit_code) == ("deadline", 5)


@pytest.mark.parametrize(
    ("overlap", "fates"),
    [
        ("skip", ["baseline", "skipped", "pass"]),
        ("queue", ["baseline", "pass", "pass"]),
        ("cancel", ["cancelled", "baseline", "pass"]),
    ],
)
def test_a_due_time_while_another_run_is_at_work(
    root: Path, overlap: str, fates: list[str]
) -> None:
    world, runner = begin(
        root, f"overlap: {overlap}\ngrace: 5m\ncatch_up: none\n", cron='"0 * * * *"'
    )
    other = world.runner()

    def long(schedule: Schedule, due: datetime, stop: StopSignal) -> None:
        if due != utc(2026, 6, 1, 13):
            return
        for beat in range(2, 102):
            world.clock.pass_time(minutes=1)
            runner.lines[0].ledger.beat(due, 1, beat)
            other.attend()
            if runner.lines[0].ledger.asked_to_end(due):
                stop.request()
                stop.request()
                return

    world.door.during = long
    world.clock.step_to(utc(2026, 6, 1, 13))
    runner.tick()
    world.clock.step_to(utc(2026, 6, 1, 15))
    runner.tick()
    assert list(world.fates("nightly").values()) == fates


def test_a_busy_scheduler_notes_what_waits_and_runs_it_next(root: Path) -> None:
    nightly = schedule(root, "catch_up: none\ngrace: 5m\n")
    weekly = schedule(root, "catch_up: none\ngrace: 5m\n", series="weekly", cron='"40 2 * * *"')
    world = make(root, START, nightly, weekly)
    runner = world.runner()
    runner.tick()

    def long(schedule: Schedule, due: datetime, stop: StopSignal) -> None:
        if schedule.series == "nightly":
            for _ in range(60):
                world.clock.pass_time(minutes=1)
                runner.attend()

    world.door.during = long
    world.clock.step_to(NIGHT)
    done = runner.tick()
    assert [each.record.series for each in done] == ["nightly", "weekly"]


def test_a_week_asleep(root: Path) -> None:
    world, runner = begin(root, "catch_up: last\n")
    world.clock.pass_time(days=7)
    runner.tick()
    assert list(world.fates("nightly").values()) == [*["missed"] * 6, "baseline"]


def test_a_file_of_notices_has_each_of_them(root: Path) -> None:
    more = "catch_up: none\nnotify: {events: [pass, not_run], file: notices.jsonl}\n"
    world, runner = begin(root, more)
    world.clock.step_to(NIGHT + timedelta(days=1))
    runner.tick()
    lines = (root / "manifests" / "schedules" / "notices.jsonl").read_text().splitlines()
    notices = [json.loads(line) for line in lines]
    assert [each["outcome"] for each in notices] == ["missed", "baseline"]
    assert all(len(each["text"].splitlines()) <= 5 for each in notices)
    over = json.loads(world.store.get("series/nightly/runs/20260603T003000Z/end.json"))
    assert over["notices"] == ["file notices.jsonl: written"]


def test_a_week_asleep_is_told_in_one_notice(root: Path) -> None:
    more = "catch_up: none\nnotify: {events: [not_run], file: notices.jsonl}\n"
    world, runner = begin(root, more)
    world.clock.pass_time(days=7)
    runner.tick()
    lines = (root / "manifests" / "schedules" / "notices.jsonl").read_text().splitlines()
    (notice,) = [json.loads(line) for line in lines]
    assert "7 times from 2026-06-02 02:30" in notice["text"]


def test_logs_go_when_they_are_old_and_nothing_else_does(root: Path) -> None:
    world, runner = begin(root, "retention: {logs: 3d}\n")

    def logs(schedule: Schedule, due: datetime, stop: StopSignal) -> None:
        place = f"sweeps/{schedule.series}-{due:%Y%m%dT%H%M%SZ}/tries/ab/abcd/1-1"
        for name in ("logs/agent.log", "evidence.json", "reward.json", "inputs/logs/x"):
            world.store.put(f"{place}/{name}", b"x")

    world.door.during = logs
    for night in range(5):
        world.clock.step_to(NIGHT + timedelta(days=night, minutes=1))
        runner.tick()
    left = {key for key in world.store.keys("sweeps/") if "/tries/ab/abcd/" in key}
    assert sum(key.endswith("evidence.json") for key in left) == 5
    assert sum(key.endswith("inputs/logs/x") for key in left) == 5
    logs_left = sorted(key.split("/")[1] for key in left if key.endswith("agent.log"))
    assert logs_left == [f"nightly-2026060{day}T003000Z" for day in (4, 5, 6)]


def test_a_clock_that_is_wrong_starts_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)
    monkeypatch.setattr(world.store, "clock", lambda: time.time() - 3600.0)
    with pytest.raises(SchedulerClockError, match="nothing is started"):
        runner.tick()
    assert not world.door.begun


def test_the_keeper_beats_and_heeds(root: Path) -> None:
    _, runner = begin(root)
    ledger = runner.lines[0].ledger
    ledger.decide(NIGHT, "run")
    ledger.claim(NIGHT, 1)
    stop = RunStop(StopSignal())
    looked = threading.Event()
    late = threading.Event()
    with Keeper(
        ledger, NIGHT, 1, stop, look=looked.set, is_late=late.is_set, beat_s=0.02
    ) as keeper:
        assert looked.wait(20.0)
        late.set()
        until = threading.Event()
        for _ in range(1000):
            if stop.cancelling:
                break
            until.wait(0.02)
        assert stop.cancelling
    assert keeper.beats > 4
    assert ledger.asked_to_end(NIGHT) == "deadline"


def test_clocks_of_two_machines_may_differ(root: Path) -> None:
    world, runner = begin(root, cron='"0 * * * *"')
    ahead = Clock(START)
    other = world.runner(ahead)
    for hour in range(1, 6):
        world.clock.step_to(START + timedelta(hours=hour))
        ahead.step_to(START + timedelta(hours=hour, minutes=3))
        first, second = (other, runner) if hour % 2 else (runner, other)
        first.tick()
        second.tick()
    assert len(world.door.begun) == len(set(world.door.begun)) == 5


def test_a_night_whose_scheduler_died_before_it_claimed_it_is_run(root: Path) -> None:
    world, runner = begin(root)
    world.clock.step_to(NIGHT)
    runner.lines[0].ledger.decide(NIGHT, "run")
    assert runner.tick() == []
    world.clock.pass_time(seconds=31)
    assert len(runner.tick()) == 1
    assert world.door.begun == [("nightly", NIGHT)]


def test_who_was_only_slow_leaves_the_run_to_who_took_it_over(root: Path) -> None:
    world, runner = begin(root, "deadline: 1h\n")
    world.clock.step_to(NIGHT)
    other = world.runner()

    def slow(schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd | None:
        if len(world.door.begun) == 2:
            return None
        other.tick()
        world.clock.pass_time(minutes=30)
        assert len(other.tick()) == 1
        world.clock.pass_time(minutes=31)
        return RunEnd("infrastructure", "driver 2 runs the sweep")

    world.door.during = slow
    assert runner.tick() == []
    assert world.fates("nightly") == {STAMP: "baseline"}
    assert len(read_trend(world.store, "nightly")) == 1


def test_a_spoilt_record_stops_its_own_series_alone(root: Path) -> None:
    spoilt = schedule(root, series="spoilt")
    world = make(root, START, spoilt, schedule(root))
    world.store.put("series/spoilt/since.json", b"{}")
    world.store.put("series/nightly/runs/notes/readme.txt", b"hello")
    runner = world.runner()
    runner.tick()
    world.clock.step_to(NIGHT)
    assert [each.record.series for each in runner.tick()] == ["nightly"]
    assert "series/spoilt/since.json" in runner.faults[0]
