"""``apiary export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from tests.scheduler.cli.builders import World
from tests.scheduler.report.generated import fill, make_lock


@pytest.fixture
def sweep(world: World) -> str:
    lock = make_lock(regression=1, workflow=1, attempts=1)
    fill(world.store, lock)
    return lock.sweep


def test_a_sweep_becomes_a_job(
    world: World, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["export", "harbor", "latest", "jobs/mine", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["sweep"], told["folder"], told["trials"]) == (sweep, "jobs/mine", 4)
    assert json.loads(Path("jobs/mine/config.json").read_text())["job_name"] == "mine"


def test_people_are_told_how_to_look_at_it(
    world: World, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["export", "harbor", sweep[:6], "mine"]) == 0
    assert "mine: 4 trials, 0 files; look at it with: harbor view " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody", "new"], "there is no sweep 'nobody'"),
        (["latest", "manifests"], "manifests: a job is written into a folder of its own"),
        (["latest"], "Missing argument 'DIR'"),
    ],
)
def test_refuses(
    world: World, sweep: str, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run_cli(["export", "harbor", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not Path("new").exists()
