from __future__ import annotations

import json

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World
from workers.contract.outcome import Cause


def test_an_empty_store_has_no_sweeps(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["status"]) == Exit.DONE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no sweep in this store yet" in captured.err


def test_what_is_not_settled_is_open(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [(Cause.NONE,), (Cause.WRONG,), (Cause.CONTAINER_LOST,), ()]
    driver.outcomes = lambda place: outcomes[place % 4]
    run_cli(["run", str(world.sweep)])
    capsys.readouterr()
    assert run_cli(["status", "--json"]) == Exit.DONE
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["sweep"] == driver.calls[0]["plan"].sweep
    counts = [sum(each[name] for each in shown["conditions"]) for name in ("passed", "failed")]
    assert counts == [2, 2]
    assert sum(each["open"] for each in shown["conditions"]) == 4
    assert sum(each["invalid"] for each in shown["conditions"]) == 0
    assert sum(each["invalid_tries"] for each in shown["conditions"]) == 2


def test_one_sweep_can_be_named(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    capsys.readouterr()
    assert run_cli(["status", "latest"]) == Exit.DONE
    assert driver.calls[0]["plan"].sweep in capsys.readouterr().out
    assert run_cli(["status", "nosuch"]) == Exit.USAGE
