from __future__ import annotations

import json

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World
from tests.scheduler.manifest.builders import write_condition


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
