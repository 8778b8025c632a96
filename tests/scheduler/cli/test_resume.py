"""``apiary resume``: what it does with dead attempts."""

from __future__ import annotations

import json

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.errors import ClusterError
from scheduler.retry import DEADLY_CAUSES, DeadRetry
from tests.scheduler.cli.builders import FakeDriver, World
from workers.contract.outcome import Cause
from workers.storage import StoreError


def started(world: World, driver: FakeDriver) -> str:
    """A sweep of four attempts, of which two are dead."""
    driver.outcomes = lambda place: (Cause.NODE_LOST,) * 3 if place % 2 else (Cause.NONE,)
    run_cli(["run", str(world.sweep)])
    sweep: str = driver.calls[0]["plan"].sweep
    return sweep


@pytest.mark.long
def test_dead_attempts_are_left_alone_unless_it_is_asked_for(
    world: World, driver: FakeDriver
) -> None:
    started(world, driver)
    causes = ["--retry-cause", "node_lost", "--retry-cause", "disk_full"]
    for words in ([], ["--retry-dead"], causes):
        run_cli(["resume", "latest", *words])
    limited = DeadRetry(frozenset({Cause.NODE_LOST, Cause.DISK_FULL}))
    assert driver.retries == [None, None, DeadRetry(), limited]


@pytest.mark.parametrize("cause", ["nod_lost", "wrong", "cancelled"])
def test_a_cause_that_kills_no_attempt_gets_the_list_of_those_that_do(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str], cause: str
) -> None:
    assert run_cli(["resume", "--retry-cause", cause]) == Exit.USAGE
    shown = capsys.readouterr().err
    assert f"'{cause}' is not one of" in shown
    assert all(f"'{each}'" in shown for each in DEADLY_CAUSES)
    assert not driver.calls


def test_status_says_how_many_are_dead_and_what_helps(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = started(world, driver)
    capsys.readouterr()
    run_cli(["status"])
    shown = capsys.readouterr()
    dead = len(driver.calls[0]["plan"].attempts) // 2
    assert f"{sweep}: {dead} attempts dead" in shown.err
    assert f"apiary resume {sweep} --retry-dead" in shown.err
    run_cli(["status", "--json"])
    (document,) = json.loads(capsys.readouterr().out)
    assert document["dead"] == dead


def test_the_end_event_says_how_many_were_revived(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    started(world, driver)
    capsys.readouterr()
    run_cli(["resume", "--retry-dead", "--json"])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["event"], last["revived"]) == ("end", 0)


def test_an_endpoint_that_has_changed_stands_in_the_next_lock(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["run", str(world.sweep), "--lock-only"]) == Exit.DONE
    path = world.root / "deploy" / "endpoints" / "scripted.json"
    again = ["resume", "latest", "--endpoint-config", str(path)]
    store = world.root / ".apiary" / "sweeps"
    capsys.readouterr()
    assert run_cli(again) == Exit.DONE
    assert not [*store.glob("*/lock-2.json")]
    endpoints = json.loads(path.read_text())
    endpoints["scripted-one"]["base_url"] = "http://other/v1"
    path.write_text(json.dumps(endpoints))
    assert run_cli(again) == Exit.DONE
    said = "lock-2: endpoints.scripted-one.base_url: none -> http://other/v1"
    assert said in capsys.readouterr().err
    (lock,) = store.glob("*/lock-2.json")
    assert json.loads(lock.read_text())["endpoints"]["scripted-one"]["base_url"]
    assert run_cli(["resume", "latest"]) == Exit.DONE
    assert driver.calls[-1]["plan"].spec.endpoints["scripted-one"].base_url == "http://other/v1"


def test_a_store_that_fails_under_a_sweep_is_told_with_what_to_do(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("put 'x': nobody is there")

    driver.during = fail
    assert run_cli(["run", str(world.sweep)]) == Exit.INFRASTRUCTURE
    *_, error, hint, look = capsys.readouterr().err.splitlines()
    assert error == "✗ put 'x': nobody is there"
    assert "`apiary doctor`" in look
    sweep = driver.calls[0]["plan"].sweep
    assert hint == f"✗ once the store answers again: apiary resume {sweep}"


def test_a_cluster_that_is_not_there_is_told_with_what_to_do(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ClusterError("no Ray cluster could be reached at head:6379")

    driver.during = fail
    assert run_cli(["run", str(world.sweep)]) == Exit.INFRASTRUCTURE
    *_, error, hint = capsys.readouterr().err.splitlines()
    assert error == "✗ no Ray cluster could be reached at head:6379"
    assert hint == f"✗ once that is mended: apiary resume {driver.calls[0]['plan'].sweep}"


def test_why_a_sweep_ended_is_told_even_if_its_report_cannot_be_written(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(*_: object) -> None:
        sweep = driver.calls[0]["plan"].sweep
        (world.root / ".apiary" / "sweeps" / sweep / "report").write_text("not a folder")

    driver.state, driver.during = "infrastructure", spoil
    assert run_cli(["run", str(world.sweep)]) == Exit.INFRASTRUCTURE
    reason, _, hint, _ = capsys.readouterr().err.splitlines()[-4:]
    assert reason == "✗ Docker is gone"
    assert hint.startswith("✗ once the store answers again: apiary resume ")
