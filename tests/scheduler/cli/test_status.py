from __future__ import annotations

import json

import pytest

from scheduler.claim_format import DriverBeat, DriverClaim, beat_key, claim_key
from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World
from workers.contract.outcome import Cause
from workers.storage import open_store


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


def test_canaries_have_rows_of_their_own(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    world.sweep.write_text(world.sweep.read_text() + "canary: {nop: 4}\n")
    run_cli(["run", str(world.sweep)])
    capsys.readouterr()
    assert run_cli(["status", "--json"]) == Exit.DONE
    (shown,) = json.loads(capsys.readouterr().out)
    rows = {each["condition"]: (each["canary"], each["planned"]) for each in shown["conditions"]}
    assert rows == {"one": (None, 4), "two": (None, 4), "canary-nop": ("nop", 2)}
    assert shown["locks"] == []


def test_a_driver_at_work_is_named(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    plan = driver.calls[0]["plan"]
    claim = DriverClaim(
        sweep=plan.sweep, generation=3, host="far", started_at="2026-01-01T00:00:00Z"
    )
    store = open_store(plan.spec.store)
    store.create(claim_key(plan.sweep, 3), claim.to_json().encode())
    capsys.readouterr()
    assert run_cli(["status"]) == Exit.DONE
    assert "driver 3 on host far is at work since 2026-01-01" in capsys.readouterr().err
    assert run_cli(["status", "--json"]) == Exit.DONE
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["driver"]["host"] == "far"
    store.put(beat_key(plan.sweep, 3), DriverBeat(beat=1, ended=True).to_json().encode())
    assert run_cli(["status", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)[0]["driver"] is None


def test_a_sweep_that_cannot_be_read_hides_no_other(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    good = driver.calls[0]["plan"].sweep
    world.store.put("sweeps/later-20990101T000000Z/lock-1.json", b'{"schema_version": 99}')
    world.store.put("sweeps/left-over/tries/x", b"")
    capsys.readouterr()
    assert run_cli(["status"]) == Exit.INFRASTRUCTURE
    shown = capsys.readouterr()
    assert good in shown.out
    assert "✗ later-20990101T000000Z cannot be read: sweeps/later-" in shown.err
    assert "✗ left-over cannot be read: " in shown.err
    run_cli(["status", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["sweep"] for row in rows if "fault" not in row] == [good]
    assert run_cli(["status", "later"]) == Exit.INFRASTRUCTURE
