from __future__ import annotations

import json
import signal
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

import scheduler.cli.schedule
import scheduler.cli.scheduled
from scheduler.cli import run_cli
from scheduler.cli.shown_runs import ShownRuns
from scheduler.metrics import SeriesMetrics
from scheduler.series.runner import Runner
from tests.scheduler.cli.builders import FakeDriver, World
from tests.scheduler.series.builders import SCHEDULE, write_schedule
from workers.contract.outcome import Cause

pytestmark = pytest.mark.long

NIGHT = datetime(2026, 6, 2, 0, 30, tzinfo=UTC)


class Now:
    """The wall clock of the command."""

    def __init__(self) -> None:
        self.at = NIGHT - timedelta(hours=12)

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    clock = Now()
    monkeypatch.setattr(scheduler.cli.schedule, "_now", clock)
    return clock


@pytest.fixture
def nightly(world: World, monkeypatch: pytest.MonkeyPatch, now: Now) -> FakeDriver:
    write_schedule(world.root, SCHEDULE)
    fake = FakeDriver()

    def drive(plan: Any, store_url: str, **how: Any) -> Any:
        return fake(plan, store_url, **how)

    monkeypatch.setattr(scheduler.cli.scheduled, "run_sweep", drive)
    return fake


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_next_tells_due_times_and_sweeps(
    world: World, nightly: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["schedule", "next", "-n", "2", "--json"]) == 0
    lines = told(capsys)
    assert [each["due"] for each in lines] == ["2026-06-02T00:30:00Z", "2026-06-03T00:30:00Z"]
    assert lines[0]["local"] == "2026-06-02T02:30:00+02:00"
    assert lines[0]["sweep"] == "nightly-20260602T003000Z"


def test_a_tick_runs_what_is_due_and_once(
    world: World, nightly: FakeDriver, now: Now, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["schedule", "tick", "--json"]) == 0
    assert not nightly.calls
    now.at = NIGHT + timedelta(minutes=1)
    assert run_cli(["schedule", "tick", "--json"]) == 0
    assert run_cli(["schedule", "tick", "--json"]) == 0
    (call,) = nightly.calls
    plan = call["plan"]
    assert (plan.sweep, plan.started_at) == ("nightly-20260602T003000Z", "2026-06-02T00:30:00Z")
    (run,) = [each for each in told(capsys) if each.get("event") == "run"]
    assert (run["outcome"], run["sweep"]) == ("baseline", plan.sweep)
    assert world.store.exists(f"sweeps/{plan.sweep}/report/report.html")
    assert world.store.exists("series/nightly/20260602T003000Z.json")


def test_a_run_that_died_goes_on_from_its_lock(
    world: World, nightly: FakeDriver, now: Now, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["schedule", "tick", "--json"])
    now.at = NIGHT
    nightly.state = "infrastructure"
    assert run_cli(["schedule", "tick", "--json"]) == 0
    first = nightly.calls[0]["plan"]
    lock = world.store.get(f"sweeps/{first.sweep}/lock-1.json")
    now.at = NIGHT + timedelta(minutes=6)
    nightly.state = "settled"
    assert run_cli(["schedule", "tick", "--json"]) == 0
    assert nightly.calls[1]["plan"].attempts == first.attempts
    assert world.store.get(f"sweeps/{first.sweep}/lock-1.json") == lock
    assert not world.store.exists(f"sweeps/{first.sweep}/lock-2.json")


def test_the_exit_code_is_that_of_the_worst_run(
    world: World, nightly: FakeDriver, now: Now
) -> None:
    run_cli(["schedule", "tick", "--json"])
    now.at = NIGHT
    nightly.outcomes = lambda place: (Cause.CONTAINER_LOST,) * 3
    assert run_cli(["schedule", "tick", "--json"]) == 5


def test_a_wrong_sweep_is_told_before_anything_starts(
    world: World, nightly: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    world.sweep.write_text(world.sweep.read_text().replace("one.yaml", "oen.yaml"))
    assert run_cli(["schedule", "tick"]) == 2
    assert "oen.yaml" in capsys.readouterr().err
    assert list(world.store.keys("series/")) == []


def test_list_and_trend(
    world: World, nightly: FakeDriver, now: Now, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run_cli(["trend", "nightly"]) == 2
    assert "no series has run" in capsys.readouterr().err
    run_cli(["schedule", "tick", "--json"])
    for day in range(3):
        now.at = NIGHT + timedelta(days=day)
        run_cli(["schedule", "tick", "--json"])
    capsys.readouterr()
    assert run_cli(["schedule", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["series"], row["next_utc"]) == ("nightly", "2026-06-05T00:30:00Z")
    assert row["outcome"] in ("pass", "inconclusive") and row["at_work"] is None
    assert run_cli(["schedule", "list"]) == 0
    assert "30 2 * * * Europe/Berlin" in capsys.readouterr().out
    assert run_cli(["trend", "nightly"]) == 0
    text = capsys.readouterr().out
    assert "███" in text and "alpha · one" in text and "$0.00" in text
    assert run_cli(["trend", "nightly", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 3
    assert run_cli(["trend", "nightly", "--html", str(tmp_path / "t.html")]) == 0
    assert "<svg" in (tmp_path / "t.html").read_text()
    assert run_cli(["trend", "nightli"]) == 2
    assert "did you mean 'nightly'" in capsys.readouterr().err
    assert run_cli(["trend", "nightly", "--html", str(tmp_path)]) == 2


def test_serve_runs_what_becomes_due_and_shows_it(
    world: World,
    nightly: FakeDriver,
    now: Now,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pages: list[str] = []
    until = time.monotonic() + 60.0

    def pause(wait_s: float, stop: Any) -> None:
        assert time.monotonic() < until
        if now.at < NIGHT:
            assert wait_s <= 30.0
            now.at = NIGHT
        elif nightly.calls:
            url = next(line for line in capsys.readouterr().err.splitlines() if "metrics:" in line)
            address = url.split("metrics: ")[1]
            pages.append(urllib.request.urlopen(address, timeout=10).read().decode())
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(scheduler.cli.schedule, "_pause", pause)
    assert run_cli(["schedule", "serve", "--metrics-port", "0"]) == 130
    (page,) = pages
    assert 'apiary_schedule_last_success_timestamp_seconds{series="nightly"} 1.78' in page
    assert 'apiary_series_regressions{series="nightly"} 0.0' in page
    assert 'apiary_series_pass_ratio{condition="one",series="nightly"} 1.0' in page
    assert 'apiary_schedule_period_seconds{series="nightly"} 90000.0' in page


def test_help_says_what_files_are() -> None:
    command = scheduler.cli.schedule.command
    assert isinstance(command, click.Group)
    assert sorted(command.commands) == ["list", "next", "serve", "tick"]


def test_runs_of_other_machines_are_shown_and_a_broken_line_hides_none(
    world: World, nightly: FakeDriver, now: Now, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = SeriesMetrics()
    shown = ShownRuns(metrics)
    runner = cast(Runner, SimpleNamespace(lines=[_line(world)]))
    shown.look(runner)
    assert "last_success" not in _samples(metrics)
    run_cli(["schedule", "tick", "--json"])
    now.at = NIGHT
    run_cli(["schedule", "tick", "--json"])
    world.store.put("series/nightly/20260101T000000Z.json", b"{")
    shown.look(runner)
    assert 'apiary_schedule_last_success_timestamp_seconds{series="nightly"}' in _samples(metrics)
    world.store.put("series/nightly/20260701T000000Z.json", b"{")
    capsys.readouterr()
    shown.look(runner)
    shown.look(runner)
    assert capsys.readouterr().err.count("20260701T000000Z.json: document") == 1


def _line(world: World) -> Any:
    return SimpleNamespace(
        schedule=SimpleNamespace(series="nightly"), ledger=SimpleNamespace(store=world.store)
    )


def _samples(metrics: SeriesMetrics) -> str:
    lines = metrics.exposition.text().decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))
