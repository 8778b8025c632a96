from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World
from workers.contract.outcome import Cause


def test_it_scores_again_what_is_in_the_store(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    page = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("report: "))
    page.unlink()
    assert run_cli(["report"]) == Exit.DONE
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {page}"
    assert page.is_file()


def test_json_is_the_summary(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.outcomes = lambda _: (Cause.CONTAINER_LOST,)
    run_cli(["run", str(world.sweep)])
    capsys.readouterr()
    assert run_cli(["report", "--json"]) == Exit.INCONCLUSIVE
    summary = json.loads(capsys.readouterr().out)
    assert summary["schema_version"] == 2
    assert [each["headline"] for each in summary["conditions"]] == [False, False]


def test_csv_has_one_row_per_cell(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    capsys.readouterr()
    assert run_cli(["report", "--csv"]) == Exit.DONE
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["task"], row["condition"], row["passed"]) for row in rows] == [
        ("buzz-native/alpha", "one", "2"),
        ("buzz-native/alpha", "two", "2"),
        ("buzz-native/beta", "one", "2"),
        ("buzz-native/beta", "two", "2"),
    ]
    assert run_cli(["report", "--csv", "--json"]) == Exit.USAGE
    assert "exclude each other" in capsys.readouterr().err
