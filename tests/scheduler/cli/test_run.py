from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.lock import read_locks
from scheduler.metrics import metrics_key
from scheduler.stop import StopSignal
from scheduler.view import Observer
from tests.scheduler.cli.builders import FakeDriver, World
from workers.contract.outcome import Cause


def test_a_sweep_file_goes_to_tables_and_a_page(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["run", str(world.sweep), "-n", "3"]) == Exit.DONE
    captured = capsys.readouterr()
    sweep = driver.calls[0]["plan"].sweep
    assert driver.calls[0]["n_concurrent"] == 3
    assert driver.calls[0]["ray_address"] is None
    assert "Regression: behaviours kept" in captured.out
    assert "Workflow: pass rate" in captured.out
    page = Path(captured.out.splitlines()[-1].removeprefix("report: "))
    assert page.is_file()
    assert page == world.root / ".apiary" / "sweeps" / sweep / "report" / "report.html"
    assert f"sweep {sweep}: 2 tasks" in captured.err
    assert read_locks(world.store, sweep)[0].profile.n_concurrent == 3


def test_the_flags_that_buzz_users_know_do_the_same(world: World, driver: FakeDriver) -> None:
    arguments = ["run", "--path", "manifests/tasks", "--layer", "workflow", "-k", "2"]
    arguments += ["--manifest", "manifests/conditions/one.yaml"]
    arguments += ["--endpoint-config", "deploy/endpoints/scripted.json", "--name", "mine"]
    assert run_cli(arguments) == Exit.DONE
    plan = driver.calls[0]["plan"]
    assert plan.name == "mine"
    assert [(cell.task.bare_name, plan.counts[cell.cell]) for cell in plan.cells] == [("beta", 2)]


def test_a_dry_run_starts_and_writes_nothing(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["run", str(world.sweep), "--dry-run"]) == Exit.DONE
    assert "Plan of" in capsys.readouterr().out
    assert driver.calls == []
    assert not (world.root / ".apiary").exists()


def test_json_is_events_on_standard_output_and_nothing_else(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["run", str(world.sweep), "--json"]) == Exit.DONE
    captured = capsys.readouterr()
    events = [json.loads(line) for line in captured.out.splitlines()]
    assert events[0]["event"] == "start"
    assert events[-1]["event"] == "end"
    assert events[-1]["exit_code"] == 0
    assert events[-1]["summary"]["conditions"][0]["rates"]["coverage"] == 1.0
    assert captured.err == ""


def test_too_little_coverage_is_inconclusive(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.outcomes = lambda place: (Cause.CONTAINER_LOST,) * 3 if place == 0 else (Cause.NONE,)
    assert run_cli(["run", str(world.sweep)]) == Exit.INCONCLUSIVE
    captured = capsys.readouterr()
    assert "no headline, only bounds: coverage" in captured.out
    assert "invalid, harness: container_lost" in captured.err


def test_a_sweep_without_a_node_is_infrastructure_and_says_how_to_go_on(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.state = "infrastructure"
    driver.outcomes = lambda _: ()
    assert run_cli(["run", str(world.sweep)]) == Exit.INFRASTRUCTURE
    shown = capsys.readouterr().err
    assert "✗ Docker is gone" in shown
    assert f"apiary resume {driver.calls[0]['plan'].sweep}" in shown


def test_ctrl_c_drains_and_a_second_cancels(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[bool, bool]] = []

    def press(stop: StopSignal, _: Observer) -> None:
        for _number in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            seen.append((stop.draining, stop.cancelling))

    before = signal.getsignal(signal.SIGINT)
    driver.during, driver.state = press, "interrupted"
    assert run_cli(["run", str(world.sweep)]) == Exit.INTERRUPTED
    assert seen == [(True, False), (True, True)]
    assert signal.getsignal(signal.SIGINT) is before
    assert "interrupted; go on with: apiary resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "say what to run: a sweep file, or --path with --manifest"),
        (["run", "--path", "manifests/tasks"], "--path needs at least one --manifest"),
        (["run", "manifests/sweeps/small.yaml", "--path", "x"], "leave out --path and --manifest"),
        (["run", "manifests/sweeps/none.yaml"], "none.yaml"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(
    world: World,
    driver: FakeDriver,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert run_cli(arguments) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert driver.calls == []
    assert not (world.root / ".apiary").exists()


def test_a_store_on_the_command_line_wins(world: World, driver: FakeDriver, tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'elsewhere'}"
    assert run_cli(["run", str(world.sweep), "--store", url]) == Exit.DONE
    assert driver.calls[0]["plan"].spec.store == url
    assert (tmp_path / "elsewhere" / "sweeps").is_dir()
    assert not (world.root / ".apiary").exists()


def test_resume_goes_on_from_the_lock_alone(world: World, driver: FakeDriver) -> None:
    driver.outcomes = lambda place: (Cause.NONE,) if place % 2 else ()
    assert run_cli(["run", str(world.sweep), "-n", "5"]) == Exit.INCONCLUSIVE
    for path in (world.root / "manifests").rglob("*"):
        if path.is_file():
            path.unlink()
    driver.outcomes = lambda place: () if place % 2 else (Cause.NONE,)
    assert run_cli(["resume", "latest"]) == Exit.DONE
    first, second = (call["plan"] for call in driver.calls)
    assert second.sweep == first.sweep
    assert second.attempts == first.attempts
    assert driver.calls[1]["n_concurrent"] == 5


def test_resume_of_a_settled_sweep_says_so_and_writes_its_report_again(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.outcomes = lambda place: (Cause.CONTAINER_LOST,) * 3 if place == 0 else (Cause.NONE,)
    assert run_cli(["run", str(world.sweep)]) == Exit.INCONCLUSIVE
    sweep = driver.calls[0]["plan"].sweep
    page = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("report: "))
    metrics = world.store.get(metrics_key(sweep))
    page.unlink()
    driver.idle = True
    assert run_cli(["resume"]) == Exit.INCONCLUSIVE
    assert f"nothing is open in {sweep}\n" in capsys.readouterr().err
    assert page.is_file()
    assert world.store.get(metrics_key(sweep)) == metrics


def test_resume_of_nothing_is_usage(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["resume"]) == Exit.USAGE
    assert "there is no sweep in this store yet" in capsys.readouterr().err


def test_a_budget_stop_has_a_code_of_its_own_and_says_how_to_go_on(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.state, driver.outcomes = "budget", lambda _: ()
    assert run_cli(["run", str(world.sweep)]) == Exit.BUDGET
    shown = capsys.readouterr().err
    assert "the sweep's budget is spent" in shown
    assert f"apiary resume {driver.calls[0]['plan'].sweep} --budget-usd N" in shown


def test_a_raised_budget_is_kept_for_the_next_resume(world: World, driver: FakeDriver) -> None:
    driver.state, driver.outcomes = "budget", lambda _: ()
    run_cli(["run", str(world.sweep)])
    run_cli(["resume", "latest", "--budget-usd", "2.5", "--budget-calls", "9"])
    run_cli(["resume", "latest", "--budget-calls", "10", "--budget-output-tokens", "7"])
    run_cli(["resume", "latest"])
    budgets = [call["plan"].budget for call in driver.calls]
    assert [(each.max_cost_usd, each.max_calls) for each in budgets] == [
        (None, None),
        (2.5, 9),
        (2.5, 10),
        (2.5, 10),
    ]
    assert budgets[3].max_output_tokens == 7
    assert [call["plan"].number for call in driver.calls] == [1, 2, 3, 3]


def live(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The world's endpoints need a key that is not there."""
    text = '{"scripted-one": {"provider": "openai", "api_key_env": "ONE_KEY"}, '
    text += '"scripted-two": {"provider": "scripted"}}'
    (world.root / "live.json").write_text(text)
    monkeypatch.delenv("ONE_KEY", raising=False)
    monkeypatch.delenv("ONE_KEY_FILE", raising=False)


def test_keys_are_needed_here_only_where_trials_run_here(
    world: World,
    driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    live(world, monkeypatch)
    said = ["run", str(world.sweep), "--endpoint-config", "live.json"]
    assert run_cli(said) == Exit.USAGE
    assert "ONE_KEY must hold the key" in capsys.readouterr().err
    assert run_cli([*said, "--ray-address", "head:6379"]) == Exit.DONE
    assert "! live.json:1" in capsys.readouterr().err
    assert run_cli(["resume", "latest"]) == Exit.USAGE
    assert "ONE_KEY must hold its key" in capsys.readouterr().err
    assert run_cli(["resume", "latest", "--ray-address", "head:6379"]) == Exit.DONE
    assert "ONE_KEY must hold its key" in capsys.readouterr().err
    driver.idle = True
    assert run_cli(["resume", "latest"]) == Exit.DONE
    assert "ONE_KEY" not in capsys.readouterr().err
    driver.idle = False
    (world.root / "key").write_text("k\n")
    monkeypatch.setenv("ONE_KEY_FILE", str(world.root / "key"))
    assert run_cli(["resume", "latest"]) == Exit.DONE
    # Another name: two sweeps of one name cannot start in the same second.
    assert run_cli([*said, "--name", "again"]) == Exit.DONE
