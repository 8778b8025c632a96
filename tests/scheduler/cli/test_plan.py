from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import scheduler.cli.estimating
from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.lock import read_lock
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest import SweepBudget
from scheduler.report.power import assumed_spread, minimum_detectable
from tests.scheduler.cli.builders import FakeDriver, World
from tests.scheduler.manifest.builders import write_condition, write_task
from workers.contract.spec import TimeoutMultipliers

ROOT = Path(__file__).parents[3]


def test_it_shows_cells_and_endpoints_and_writes_nothing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    captured = capsys.readouterr()
    for word in ("alpha", "beta", "regression", "workflow", "endpoint scripted-one", "no key"):
        assert word in captured.out
    assert "nothing was started" in captured.err
    assert not (world.root / ".apiary").exists()


def test_json_has_every_cell(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["plan", str(world.sweep), "--json", "-k", "4", "-i", "beta"]) == Exit.DONE
    plan = json.loads(capsys.readouterr().out)
    assert {cell["task"] for cell in plan["cells"]} == {"buzz-native/beta"}
    assert all(cell["attempts"] == 4 for cell in plan["cells"])
    assert plan["attempts"] == 4 * len(plan["cells"])
    assert plan["store"] == world.store_url


def test_faults_are_told_with_file_line_and_field(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.sweep.write_text(world.sweep.read_text() + "atempts: 3\n")
    assert run_cli(["plan", str(world.sweep)]) == Exit.USAGE
    shown = capsys.readouterr().err
    line = len(world.sweep.read_text().splitlines())
    assert f"small.yaml:{line}: atempts: " in shown
    assert "did you mean 'attempts'?" in shown


def test_a_missing_key_is_a_warning_and_only_a_run_refuses(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    write_condition(world.root / "manifests", "one", "live")
    arguments = ["--path", "manifests/tasks", "--manifest", "manifests/conditions/one.yaml"]
    for shown in (["plan", *arguments], ["run", *arguments, "--dry-run"]):
        assert run_cli(shown) == Exit.DONE
        captured = capsys.readouterr()
        assert "! deploy/endpoints/anthropic-live.json:1: live.api_key_env: " in captured.err
        assert "Plan of one" in captured.out
    assert run_cli(["run", *arguments]) == Exit.USAGE
    assert "LIVE_KEY" in capsys.readouterr().err
    assert driver.calls == []


def test_no_line_ends_in_blanks_where_there_is_no_terminal(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_base_image_that_setup_chose_is_used(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / ".apiary").mkdir()
    (world.root / ".apiary" / "base-image").write_text("apiary-base:bookworm\n")
    assert run_cli(["plan", str(world.sweep), "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["base_image"] == "apiary-base:bookworm"
    monkeypatch.setenv("APIARY_BASE_IMAGE", "mine:1")
    assert run_cli(["plan", str(world.sweep), "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["base_image"] == "mine:1"


def test_the_cost_at_given_tokens(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    said = ["plan", str(world.sweep), "--tokens-per-attempt", "12_000/800"]
    assert run_cli(said) == Exit.DONE
    assert "attempts, at the tokens given, none cached" in capsys.readouterr().out
    assert run_cli([*said, "--json"]) == Exit.DONE
    cost = json.loads(capsys.readouterr().out)["cost"]
    assert (cost["basis"], cost["unknown"]) == (0, 0)
    assert cost["low_usd"] == cost["high_usd"]
    assert run_cli(["plan", str(world.sweep), "--tokens-per-attempt", "many"]) == Exit.USAGE
    assert "not of the form IN/OUT" in capsys.readouterr().err


def test_the_cost_from_what_the_store_has(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["plan", str(world.sweep), "--estimate"]
    assert run_cli(said) == Exit.DONE
    assert "cost: unknown, no attempt of these conditions" in capsys.readouterr().out
    assert not (world.root / ".apiary").exists()
    assert run_cli(["run", str(world.sweep)]) == Exit.DONE
    attempts = len(driver.calls[0]["plan"].attempts)
    capsys.readouterr()
    assert run_cli(said) == Exit.DONE
    assert f"from {attempts} earlier attempts" in capsys.readouterr().out


def test_other_sweeps_do_not_take_the_place_of_those_that_tell_the_cost(
    world: World,
    driver: FakeDriver,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifests = world.sweep.parents[1]
    said = ["--path", str(manifests / "tasks"), "--endpoint-config"]
    said += [str(world.root / "deploy" / "endpoints" / "scripted.json"), "-k", "2", "--manifest"]
    one, two = (str(manifests / "conditions" / f"{name}.yaml") for name in ("one", "two"))
    for condition in (one, two):
        assert run_cli(["run", *said, condition]) == Exit.DONE
    monkeypatch.setattr(scheduler.cli.estimating, "TRIES", 4)
    capsys.readouterr()
    for condition in (one, two):
        assert run_cli(["plan", *said, condition, "--estimate"]) == Exit.DONE
        assert "from 4 earlier attempts" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["[/red]x[bold]", "ünïcödé 模型", "a  b"])
def test_a_name_is_shown_as_it_is_written(
    world: World, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = world.sweep.parents[1] / "conditions" / "one.yaml"
    path.write_text(path.read_text().replace("condition: one", f"condition: '{name}'"))
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    assert name in capsys.readouterr().out


MATRIX = """\
name: matrix
attempts: 4
conditions:
  - path: ../conditions/one.yaml
    include: [beta]
    attempts: 6
    vary: {thinking_effort: [low, high]}
  - ../conditions/two.yaml
endpoints: ../../deploy/endpoints/scripted.json
canary: {solver: 5}
"""


def test_conditions_show_what_varies_their_digests_and_how_much_they_run(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.sweep.write_text(MATRIX)
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    table = capsys.readouterr().out.partition("\nConditions\n")[2]
    rows = [line.split() for line in table.partition("\n\n")[0].splitlines()]
    assert rows[0] == ["condition", "varies", "digest", "cells", "attempts"]
    assert [[*row[:1], *row[-2:]] for row in rows[2:]] == [
        ["one+thinking_effort=low", "1", "6"],
        ["one+thinking_effort=high", "1", "6"],
        ["two", "2", "8"],
        ["canary-solver", "2", "4"],
    ]
    assert rows[2][1:3] == ["thinking_effort:", "low"]
    assert "24 attempts, 4 of them canaries: 2 tasks × 3 conditions" in table
    assert run_cli(["plan", str(world.sweep), "--json"]) == Exit.DONE
    plan = json.loads(capsys.readouterr().out)
    assert (plan["attempts"], plan["canary_attempts"]) == (24, 4)
    shown = {each["condition"]: each for each in plan["conditions"]}
    assert shown["one+thinking_effort=high"]["varies"] == {
        "thinking_effort": "thinking_effort=high"
    }
    assert shown["canary-solver"]["canary"] == "solver"
    assert list(shown) == [each["condition"] for each in plan["conditions"]]
    assert len({each["digest"] for each in plan["conditions"]}) == 4


def test_the_detectable_difference_of_every_pair_is_shown(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("gamma", "delta", "epsilon"):
        write_task(world.root / "manifests", name, "workflow")
    world.sweep.write_text(MATRIX.replace("    include: [beta]\n", ""))
    assert run_cli(["plan", str(world.sweep), "--json"]) == Exit.DONE
    pairs = json.loads(capsys.readouterr().out)["detectable"]
    assert [each["conditions"] for each in pairs] == [
        ["one+thinking_effort=low", "one+thinking_effort=high"],
        ["one+thinking_effort=low", "two"],
        ["one+thinking_effort=high", "two"],
    ]
    assert {each["tasks"] for each in pairs} == {4}
    # k is 6 and 6, then the harmonic mean of 6 and 4, rounded down.
    expected = [minimum_detectable(4, assumed_spread(k)) for k in (6, 4, 4)]
    assert [each["difference"] for each in pairs] == expected
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    shown = capsys.readouterr().out
    points = f"{100 * expected[0]:.0f} percentage points"
    assert (
        f"one+thinking_effort=low and one+thinking_effort=high: a difference of {points} would be "
        "found in 80 % of cases (4 workflow tasks)\n" in shown
    )


def test_nothing_is_compared_over_fewer_than_two_tasks(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    assert "one and two: too few workflow tasks in common to compare them" in (
        capsys.readouterr().out
    )


def test_a_large_plan_shows_tasks_in_the_place_of_cells(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(49):
        write_task(world.root / "manifests", f"many-{number:02d}")
    assert run_cli(["plan", str(world.sweep)]) == Exit.DONE
    head = capsys.readouterr().out.splitlines()[1].split()
    assert head == ["task", "layer", "conditions", "attempts"]


@pytest.mark.long
def test_a_hundred_thousand_attempts_are_planned_in_seconds_and_without_ray() -> None:
    program = (
        "import sys, time; started = time.process_time(); from scheduler.cli import run_cli; "
        "code = run_cli(['plan', 'manifests/sweeps/large-k.yaml', '-k', '2000', '--json']); "
        "spent = time.process_time() - started; "
        "heavy = {'ray', 'docker', 'boto3'} & set(sys.modules); "
        "print(code, spent, sorted(heavy), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert json.loads(ran.stdout)["attempts"] == 100_000
    code, spent, heavy = ran.stderr.split(maxsplit=2)
    assert (code, heavy.strip()) == ("0", "[]")
    assert float(spent) < 5


def test_multipliers_of_all_and_of_one(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--timeout-multiplier", "2", "--verifier-timeout-multiplier", "0.5"]
    assert run_cli(["run", str(world.sweep), "--lock-only", "--json", *flags]) == 0
    sweep = json.loads(capsys.readouterr().out.splitlines()[-1])["sweep"]
    lock = read_lock(world.store, sweep, 1)
    assert lock.timeout_multipliers == TimeoutMultipliers(
        agent=2.0, verifier=0.5, agent_setup=2.0, environment_build=2.0
    )
    plain = plan_from_lock(lock).spec
    assert plain.timeout_multipliers == lock.timeout_multipliers
    assert (
        run_cli(["plan", str(world.sweep), "--into", sweep, "--agent-timeout-multiplier", "3"]) == 2
    )
    assert "frozen at the sweep's start as 2.0, so it cannot become 3.0" in capsys.readouterr().err
    assert run_cli(["plan", str(world.sweep), "--into", sweep]) == 0


def test_flags_bound_the_whole_sweep(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--budget-usd", "0.5", "--budget-calls", "7"]
    assert run_cli(["run", str(world.sweep), "--lock-only", "--json", *flags]) == 0
    sweep = json.loads(capsys.readouterr().out.splitlines()[-1])["sweep"]
    assert read_lock(world.store, sweep, 1).budget == SweepBudget(max_cost_usd=0.5, max_calls=7)
    assert run_cli(["run", str(world.sweep), "--into", sweep, "--lock-only", *flags[:2]]) == 0
    assert run_cli(["plan", str(world.sweep), "--budget-usd", "0"]) == 2
    assert "0 is not in the range" in capsys.readouterr().err


def test_what_only_flags_say_is_the_command_lines_fault(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", str(world.sweep), "--relay-url", "wss://relay.example.org"]) == 2
    told = capsys.readouterr().err
    assert "command line" in told and "owner_key_env" in told
    assert f"{world.sweep.name}:1" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--path", "manifests/tasks", "--agent", "oracle"], "without one: alpha, beta"),
        (["--path", "manifests/tasks", "--agent", "nop"], "'nop' says nothing on a relay"),
        (["--path", "manifests/tasks"], "--path needs at least one --manifest"),
        (
            ["--path", "manifests/tasks", "--agent", "nop", "--manifest", "a"],
            "--agent nop asks no model: leave out --manifest",
        ),
    ],
)
def test_an_agent_without_a_model(
    world: World, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run_cli(["run", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not list(world.store.keys("sweeps/"))
