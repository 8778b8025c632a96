"""Runs held against those before them, through a real store and the report's own gate."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.lock_format import Versions
from scheduler.plan import BaseImage, Profile
from scheduler.series.closing import EXIT_CODES, Done
from scheduler.series.runner import Runner
from tests.scheduler.manifest.builders import write_world
from tests.scheduler.series.builders import schedule, utc
from tests.scheduler.series.memory import MemoryStore
from tests.scheduler.series.world import Clock, FakeDoor, World
from workers.contract.outcome import Cause

pytestmark = pytest.mark.long

NIGHT = utc(2026, 6, 2, 0, 30)
Nights = Callable[[int, str, int], Cause]


class Nightly:
    """A series whose nights are run one after the other."""

    def __init__(self, root: Path, more: str = "", **door: int) -> None:
        write_world(root)
        store, clock = MemoryStore(), Clock(utc(2026, 6, 1, 12))
        self.door = FakeDoor(store, clock, **door)
        self.world = World(store, clock, (schedule(root, more),), self.door)
        self.runner: Runner = self.world.runner()
        self.runner.tick()
        self.night = 0

    def run(self, cause: Callable[[str, int], Cause] = lambda task, index: Cause.NONE) -> Done:
        self.door.outcome = lambda s, due, task, index: cause(task, index)
        self.world.clock.step_to(NIGHT + timedelta(days=self.night))
        self.night += 1
        (done,) = self.runner.tick()
        return done

    def change(self, **changes: object) -> None:
        self.door.changes = lambda due: changes


def _lost(task: str, index: int) -> Cause:
    return Cause.WRONG if task == "task-00" else Cause.NONE


def test_first_baseline_then_pass_then_doubt_then_alarm_then_recovery(tmp_path: Path) -> None:
    nightly = Nightly(tmp_path)
    assert [nightly.run().record.judgement.outcome for _ in range(12)] == [
        "baseline",
        *["pass"] * 11,
    ]
    doubt = nightly.run(_lost)
    assert (doubt.record.judgement.outcome, doubt.exit_code) == ("inconclusive", 4)
    assert "this run alone:" in doubt.text
    alarm = nightly.run(_lost)
    assert (alarm.record.judgement.outcome, alarm.exit_code) == ("regression", 3)
    (test,) = alarm.record.judgement.events("fell")
    assert (test.task, test.recent, test.before) == ("buzz-native/task-00", (0, 6), (36, 36))
    assert test.fallen_since == doubt.record.sweep.rpartition("-")[2]
    still = nightly.run(_lost)
    assert still.record.judgement.outcome == "regression"
    assert not still.record.judgement.events("fell") and "is still at" in still.text
    outcomes = [nightly.run().record for _ in range(2)]
    assert outcomes[0].judgement.outcome == "regression"
    assert [each.task for each in outcomes[1].judgement.events("recovered")] == [test.task]
    assert outcomes[1].judgement.outcome == "pass"
    again = nightly.run()
    assert again.record.judgement.outcome == "pass"
    assert next(t for t in again.record.judgement.tests if t.task == test.task).before == (39, 39)


def test_an_outage_is_never_held_against_anything(tmp_path: Path) -> None:
    nightly = Nightly(tmp_path)
    for _ in range(5):
        nightly.run()
    for _ in range(3):
        done = nightly.run(lambda task, index: Cause.CONTAINER_LOST)
        assert done.record.judgement.outcome == "outage"
        assert "harness/container_lost" in done.text
    after = nightly.run()
    assert after.record.judgement.outcome == "pass"
    assert {test.before for test in after.record.judgement.tests} == {(15, 15)}


def test_a_change_breaks_the_line_and_is_named(tmp_path: Path) -> None:
    nightly = Nightly(tmp_path)
    nightly.run()
    named = {"python": "3", "ray": None, "docker": None, "nostr_sdk": None}
    nightly.change(
        versions=Versions.model_validate({"apiary": "9.9", **named}),
        base_image=BaseImage(reference="other", digest="sha256:" + "a" * 64),
        profile=Profile(cpus=64),
    )
    changed = nightly.run().record
    assert [each.text for each in changed.breaks] == [
        "Apiary version: 0 → 9.9",
        "resource profile cores: 2 → 64",
        "image base: base → sha256:aaaaaaaaaaaa",
    ]
    assert changed.judgement.outcome == "pass"
    assert len(changed.judgement.across) == 3
    later = nightly.run().record
    assert not later.breaks and len(later.judgement.across) == 3


def test_other_conditions_and_tasks_begin_a_new_line(tmp_path: Path) -> None:
    nightly = Nightly(tmp_path)
    nightly.run()
    nightly.door.regression = 1
    fewer = nightly.run().record
    assert [each.text for each in fewer.breaks] == [
        "task buzz-native/task-01: " + f"{fewer.breaks[0].before[:12]} → none"
    ]
    assert fewer.judgement.outcome == "baseline"
    assert nightly.run().record.judgement.outcome == "pass"


def test_a_pinned_baseline_accepts_a_new_level(tmp_path: Path) -> None:
    pinned = "20260602T003000Z"
    nightly = Nightly(tmp_path, f"gate: {{baseline: {pinned}}}\n")
    assert nightly.run(_lost).record.judgement.reasons[0].startswith("the pinned baseline")
    second = nightly.run(_lost).record.judgement
    assert second.baseline == f"nightly-{pinned}"
    assert second.outcome == "pass"


def test_a_weekly_workflow_passes_once_there_are_enough_runs(tmp_path: Path) -> None:
    weekly = Nightly(tmp_path, "gate: {margin: 0.15}\n", regression=0, workflow=10)
    outcomes = [
        weekly.run(
            lambda task, index: Cause.WRONG if index == 0 else Cause.NONE
        ).record.judgement.outcome
        for _ in range(20)
    ]
    assert outcomes[:2] == ["baseline", "inconclusive"] and outcomes[-1] == "pass"
    assert "regression" not in outcomes


def test_codes_are_those_of_every_command() -> None:
    from scheduler.cli.exits import Exit

    assert {name: Exit(code).name for name, code in EXIT_CODES.items()} == {
        "pass": "DONE",
        "baseline": "DONE",
        "regression": "REGRESSION",
        "inconclusive": "INCONCLUSIVE",
        "outage": "INFRASTRUCTURE",
        "deadline": "INFRASTRUCTURE",
        "budget": "BUDGET",
        "cancelled": "DONE",
    }
