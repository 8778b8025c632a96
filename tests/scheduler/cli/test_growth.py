# ruff: noqa: E501 - tables of refusals, one a line
"""A sweep that grows, through the command line, over a directory and over S3."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import scheduler.cli.running
from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.lock import Lock, LockError, read_locks, superseded, write_lock
from tests.interfaces.test_store import BUCKET, s3_options  # noqa: F401 - a fixture
from tests.scheduler.cli.builders import FakeDriver, World
from tests.scheduler.manifest.builders import write, write_condition, write_task
from workers.contract.outcome import Cause
from workers.storage import Store, open_store

pytestmark = pytest.mark.long

Capture = pytest.CaptureFixture[str]


@pytest.fixture(params=["file", "s3"])
def store(
    request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Store:
    """The store that commands use."""
    url = world.store_url
    if request.param == "s3":
        url = f"s3://{BUCKET}/{tmp_path.name}?{urlencode(request.getfixturevalue('s3_options'))}"
    monkeypatch.setenv("APIARY_STORE", url)
    return open_store(url)


file_only = pytest.mark.parametrize("store", ["file"], indirect=True)


def locks_of(store: Store, driver: FakeDriver) -> list[Lock]:
    return read_locks(store, driver.calls[0]["plan"].sweep)


def grow(world: World, *more: str) -> int:
    return run_cli(["run", str(world.sweep), "--into", "latest", *more])


def edit(world: World, old: str, new: str) -> None:
    text = world.sweep.read_text()
    assert old in text
    world.sweep.write_text(text.replace(old, new))


def ids(driver: FakeDriver, call: int) -> set[str]:
    return {each.attempt for each in driver.calls[call]["plan"].attempts}


def plan_json(world: World, capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert run_cli(["plan", str(world.sweep), "--into", "latest", "--json"]) == Exit.DONE
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)["into"]
    return shown


def add_condition(world: World, name: str) -> None:
    write_condition(world.root / "manifests", name)
    edit(world, "endpoints:", f"  - ../conditions/{name}.yaml\nendpoints:")


def test_more_attempts_keep_what_is_done_and_its_ids(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    assert run_cli(["run", str(world.sweep), "-n", "3"]) == Exit.DONE
    before = {key: store.get(key) for key in store.keys("sweeps/") if "result.json" in key}
    assert grow(world, "-k", "5") == Exit.DONE
    first, second = locks_of(store, driver)
    assert (second.number, first.number) == (2, 1)
    assert set(first.attempts.values()) == {2}
    assert set(second.attempts.values()) == {5}
    assert second.grown_at is not None
    assert (second.started_at, second.profile) == (first.started_at, first.profile)
    assert ids(driver, 0) < ids(driver, 1)
    assert {key: store.get(key) for key in before} == before
    assert driver.calls[1]["n_concurrent"] == 3
    assert "lock-2: 12 attempts added, 8 kept" in capsys.readouterr().err
    assert len([key for key in store.keys("sweeps/") if key.endswith("result.json")]) == 20


@file_only
def test_another_condition_and_another_task(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    add_condition(world, "three")
    write_task(world.root / "manifests", "aardvark")
    told = plan_json(world, capsys)
    assert (told["added"], told["kept"], told["lock"], told["is_new"]) == (10, 8, 2, True)
    assert told["new_tasks"] == ["buzz-native/aardvark"]
    assert told["new_conditions"] == ["three"]
    assert len(locks_of(store, driver)) == 1
    assert grow(world) == Exit.DONE
    assert ids(driver, 0) < ids(driver, 1)
    assert len(ids(driver, 1)) == 18
    assert run_cli(["plan", str(world.sweep), "--into", "latest"]) == Exit.DONE
    assert "nothing to add, lock-2.json plans all of it" in capsys.readouterr().out


def test_a_changed_task_is_new_cells_and_the_old_ones_are_kept_apart(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    write(world.root / "manifests/tasks/beta/instruction.md", "Do beta otherwise.\n")
    told = plan_json(world, capsys)
    (changed,) = told["changed"]
    assert (changed["what"], changed["name"]) == ("task", "buzz-native/beta")
    assert changed["superseded_results"] == 4
    assert changed["before"] != changed["after"]
    assert (told["added"], told["kept"], len(told["superseded_cells"])) == (4, 4, 2)
    assert grow(world) == Exit.DONE
    first, second = locks_of(store, driver)
    assert len(ids(driver, 0) & ids(driver, 1)) == 4
    old = superseded([first, second])
    assert {each.task.bare_name for each in old} == {"beta"}
    assert not {each.cell for each in old} & second.attempts.keys()
    for each in old:
        for attempt in each.ids(second.sweep):
            assert store.exists(
                f"sweeps/{second.sweep}/attempts/{attempt[:2]}/{attempt}/result.json"
            )
    capsys.readouterr()
    assert run_cli(["status", "latest"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert f"{second.sweep} grew to lock-2.json at {second.grown_at}:" in shown
    before, after = changed["before"][:12], changed["after"][:12]
    assert f"task beta has changed, {before} to {after}: new cells; 4 results of the old" in shown
    assert run_cli(["report", "latest", "--json"]) == Exit.DONE
    summary = json.loads(capsys.readouterr().out)
    assert sum(each["rates"]["planned"] for each in summary["cells"]) == 8
    apart = [(each["task_digest"], each["rates"]["passed"]) for each in summary["superseded"]]
    assert apart == [(changed["before"], 2)] * 2
    assert run_cli(["report", "latest"]) == Exit.DONE
    assert "Superseded by a changed task or condition: counts nowhere" in capsys.readouterr().out


@file_only
def test_a_changed_condition_and_the_way_back(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    path = world.root / "manifests/conditions/one.yaml"
    text = path.read_text()
    path.write_text(text.replace("timeout_seconds: 300", "timeout_seconds: 200"))
    assert grow(world) == Exit.DONE
    assert len(ids(driver, 0) & ids(driver, 1)) == 4
    path.write_text(text)
    told = plan_json(world, capsys)
    assert (told["added"], told["kept"]) == (0, 8)
    assert grow(world) == Exit.DONE
    assert ids(driver, 2) == ids(driver, 0)
    assert [lock.number for lock in locks_of(store, driver)] == [1, 2, 3]


@file_only
def test_nothing_to_add_goes_on_without_another_lock(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    driver.outcomes = lambda place: (Cause.NONE,) if place % 2 else ()
    run_cli(["run", str(world.sweep)])
    driver.outcomes = lambda _: (Cause.NONE,)
    assert grow(world) == Exit.DONE
    assert len(locks_of(store, driver)) == 1
    assert ids(driver, 1) == ids(driver, 0)
    assert "nothing to add: lock-1.json plans all of it already" in capsys.readouterr().err


@file_only
def test_a_dry_run_and_a_plan_write_nothing(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    before = sorted(store.keys(""))
    edit(world, "attempts: 2", "attempts: 4")
    capsys.readouterr()
    assert grow(world, "--dry-run") == Exit.DONE
    shown = capsys.readouterr()
    assert "would grow to lock-2.json:\n  8 attempts added, 8 kept" in shown.out
    assert "nothing was written" in shown.err
    assert plan_json(world, capsys)["added"] == 8
    assert sorted(store.keys("")) == before
    assert len(driver.calls) == 1


@file_only
def test_the_cost_is_that_of_what_is_left(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    asked = [
        "plan",
        str(world.sweep),
        "--into",
        "latest",
        "--tokens-per-attempt",
        "1000000/0",
        "--json",
    ]
    for attempts, cost in (("2", None), ("5", 12.0)):
        capsys.readouterr()
        assert run_cli([*asked, "-k", attempts]) == Exit.DONE
        shown = json.loads(capsys.readouterr().out)["cost"]
        assert (shown and shown["low_usd"]) == cost


def test_only_the_lock_and_then_a_resume(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    assert run_cli(["run", str(world.sweep), "--lock-only"]) == Exit.DONE
    assert driver.calls == []
    assert "lock-1.json is written; run it with: apiary resume small-" in capsys.readouterr().err
    assert run_cli(["resume"]) == Exit.DONE
    assert grow(world, "-k", "3", "--lock-only", "--json") == Exit.DONE
    event = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert event == {"event": "locked", "lock": 2, "sweep": driver.calls[0]["plan"].sweep}
    assert len(driver.calls) == 1
    assert run_cli(["resume"]) == Exit.DONE
    assert len(driver.calls[1]["plan"].attempts) == 12
    assert driver.calls[1]["plan"].number == 2


@file_only
def test_a_driver_at_work_runs_its_own_lock_and_says_that_there_is_another(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    text = world.sweep.read_text()

    def meanwhile(*_: object) -> None:
        driver.during = lambda *_: None
        world.sweep.write_text(text.replace("attempts: 2", "attempts: 3"))
        assert grow(world, "--lock-only") == Exit.DONE

    driver.during = meanwhile
    assert run_cli(["run", str(world.sweep)]) == Exit.INCONCLUSIVE
    assert "the sweep has grown meanwhile; go on with: apiary resume small-" in (
        capsys.readouterr().err
    )
    assert len(driver.calls[0]["plan"].attempts) == 8
    assert run_cli(["resume"]) == Exit.DONE
    assert len(driver.calls[1]["plan"].attempts) == 12


def test_of_two_who_grow_it_at_once_one_is_refused(
    world: World,
    store: Store,
    driver: FakeDriver,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_cli(["run", str(world.sweep)])

    def late(given: Store, plan: Any) -> Lock:
        monkeypatch.setattr(scheduler.cli.running, "write_lock", write_lock)
        assert grow(world, "-k", "4") == Exit.DONE
        return write_lock(given, plan)

    monkeypatch.setattr(scheduler.cli.running, "write_lock", late)
    capsys.readouterr()
    assert grow(world, "-k", "3") == Exit.USAGE
    assert "lock-2.json: somebody else has grown this sweep in the meantime" in (
        capsys.readouterr().err
    )
    assert len(driver.calls) == 2
    assert [set(lock.attempts.values()) for lock in locks_of(store, driver)] == [{2}, {4}]
    assert grow(world, "-k", "3") == Exit.USAGE
    assert "attempts: fewer attempts than are planned already" in capsys.readouterr().err
    assert grow(world, "-k", "6") == Exit.DONE
    assert [lock.number for lock in locks_of(store, driver)] == [1, 2, 3]


def test_of_sixteen_growers_exactly_one_writes_each_lock(
    world: World, store: Store, driver: FakeDriver
) -> None:
    run_cli(["run", str(world.sweep)])
    plan = driver.calls[0]["plan"]
    for number in (2, 3):
        start = threading.Barrier(16)

        def race(seed: int, number: int = number, start: threading.Barrier = start) -> bool:
            mine = replace(
                plan, number=number, grown_at=f"2026-01-01T00:00:{seed:02d}Z", archives={}
            )
            start.wait(10)
            try:
                write_lock(store, mine)
            except LockError:
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(race, range(16)))
        assert sum(won) == 1
        lock = locks_of(store, driver)[-1]
        assert lock.grown_at == f"2026-01-01T00:00:{won.index(True):02d}Z"
    assert [lock.number for lock in locks_of(store, driver)] == [1, 2, 3]


def take_task(world: World) -> None:
    for path in sorted((world.root / "manifests/tasks/alpha").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (world.root / "manifests/tasks/alpha").rmdir()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda w: edit(w, "attempts: 2", "attempts: 1"), "small.yaml:2: attempts: fewer attempts than are planned already: buzz-native/alpha × one: 2 -> 1, "),
        (lambda w: edit(w, "  - ../conditions/two.yaml\n", ""), "small.yaml:3: conditions: condition two is in the sweep, and would be missing: a sweep only grows"),
        (take_task, "small.yaml:1: tasks: task buzz-native/alpha is in the sweep, and would be missing"),
        (lambda w: edit(w, "  - ../conditions/two.yaml\n", "  - {path: ../conditions/two.yaml, exclude: [beta]}\n"), "attempts: fewer attempts than are planned already: buzz-native/beta × two: 2 -> 0; a"),
        (lambda w: edit(w, "attempts: 2", "attempts: 2\nseed: 4"), "small.yaml:3: seed: frozen at the sweep's start as 0, so it cannot become 4"),
        (lambda w: edit(w, "sealed", "declared"), "small.yaml:7: network: frozen at the sweep's start as 'sealed', so it cannot become 'declared'"),
        (lambda w: edit(w, "attempts: 2", "attempts: 2\nscoring: {rule: valid_only}"), "small.yaml:3: scoring.rule: frozen at the sweep's start as 'strict', so"),
        (lambda w: edit(w, "attempts: 2", "attempts: 2\nscoring: {coverage_gate: 0.5}"), "scoring.coverage_gate: frozen at the sweep's start as 0.9, so it cannot become 0.5"),
        (lambda w: edit(w, "attempts: 2", "attempts: 2\nlimits: {max_tries: 2, poison: 9}"), "limits.poison: frozen at the sweep's start as 5, so it cannot become 9"),
        (lambda w: write(w.root / ".apiary/base-image", "other:1\n"), "APIARY_BASE_IMAGE: the base image was frozen at the sweep's start as none, and here it is other:1"),
    ],
)  # fmt: skip
def test_what_may_not_change_is_named(
    world: World,
    driver: FakeDriver,
    capsys: Capture,
    change: Callable[[World], object],
    told: str,
) -> None:
    run_cli(["run", str(world.sweep)])
    change(world)
    for command in ("plan", "run"):
        capsys.readouterr()
        assert run_cli([command, str(world.sweep), "--into", "latest"]) == Exit.USAGE
        assert told in capsys.readouterr().err
    assert len(driver.calls) == 1
    assert len(locks_of(world.store, driver)) == 1


def test_every_frozen_difference_is_named_at_once(
    world: World, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    edit(world, "attempts: 2", "attempts: 1\nseed: 4\nlimits: {max_tries: 2}")
    capsys.readouterr()
    assert grow(world, "--network", "declared") == Exit.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        "--network", "seed", "limits.max_tries", "attempts",
    ]  # fmt: skip


@file_only
def test_budget_endpoints_and_canaries_may_change_and_are_told(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    run_cli(["run", str(world.sweep)])
    edit(world, "attempts: 2", "attempts: 2\nbudget: {max_calls: 900}\ncanary: {solver: 4}")
    capsys.readouterr()
    assert grow(world) == Exit.DONE
    shown = capsys.readouterr().err
    assert "lock-2: 2 attempts added, 8 kept" in shown
    assert "budget.max_calls: none -> 900" in shown
    assert "new condition: canary-solver" in shown
    edit(world, "canary: {solver: 4}", "canary: {solver: 40}")
    write_task(world.root / "manifests", "aaa")
    write_task(world.root / "manifests", "aab")
    assert grow(world) == Exit.DONE
    cells = {each.cell: each for each in locks_of(store, driver)[-1].cells}
    canaries = {c.task.bare_name: c.attempts for c in cells.values() if c.condition.canary}
    assert canaries == {"aaa": 1, "alpha": 1, "beta": 1}
    assert superseded(locks_of(store, driver)) == ()
    edit(world, "canary: {solver: 40}", "")
    assert plan_json(world, capsys)["is_new"] is False
    edit(world, "budget:", "canary: {nop: 40}\nbudget:")
    assert grow(world) == Exit.USAGE
    assert "canary.solver: condition canary-solver is in the sweep, and would be missing" in (
        capsys.readouterr().err
    )


@file_only
def test_flags_grow_a_sweep_too_and_its_name_is_its_own(
    world: World, store: Store, driver: FakeDriver, capsys: Capture
) -> None:
    flags = ["--path", "manifests/tasks", "--manifest", "manifests/conditions/one.yaml"]
    flags += ["--endpoint-config", "deploy/endpoints/scripted.json", "-k", "1"]
    assert run_cli(["run", *flags]) == Exit.DONE
    more = ["--manifest", "manifests/conditions/two.yaml"]
    assert run_cli(["run", *flags, *more, "--into", "one"]) == Exit.DONE
    assert [plan["plan"].sweep[:4] for plan in driver.calls] == ["one-", "one-"]
    assert len(ids(driver, 1)) == 4
    assert run_cli(["run", *flags, *more, "--into", "one", "--name", "x"]) == Exit.USAGE
    assert "--into names the sweep: leave out --name" in capsys.readouterr().err
    assert run_cli(["run", *flags, "--into", "nosuch"]) == Exit.USAGE


@file_only
def test_a_lock_of_before_growth_was_known_still_grows(
    world: World, store: Store, driver: FakeDriver
) -> None:
    run_cli(["run", str(world.sweep)])
    key = f"sweeps/{driver.calls[0]['plan'].sweep}/lock-1.json"
    lock = json.loads(store.get(key))
    for name in ("grown_at", "canary"):
        del lock[name]
    for condition in lock["conditions"]:
        del condition["canary"], condition["varies"]
    store.put(key, json.dumps(lock).encode())
    assert grow(world, "-k", "3") == Exit.DONE
    assert len(ids(driver, 1)) == 12
