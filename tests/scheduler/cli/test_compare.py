from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.report import generated
from tests.scheduler.report.generated import make_lock, write
from tests.scheduler.report.sides import NOW_START
from workers.contract.outcome import Cause
from workers.storage import open_store

A, B = "made-20260101T000000Z", "made-20260102T000000Z"


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sweeps: the second fails the first task wholly, and loses one attempt of the second."""
    monkeypatch.setenv("APIARY_STORE", f"file://{tmp_path}")
    store = open_store(f"file://{tmp_path}")
    for start, spoilt in (("2026-01-01T00:00:00Z", False), (NOW_START, True)):
        lock = make_lock(conditions=1, regression=1, workflow=2, attempts=3, started_at=start)
        store.put(f"sweeps/{lock.sweep}/lock-1.json", lock.to_json().encode())
        for place, cell in enumerate(lock.cells):
            for index in range(3):
                cause = Cause.WRONG if spoilt and place == 0 else Cause.NONE
                tries = (
                    [Cause.CONTAINER_LOST] * 3 if spoilt and (place, index) == (1, 0) else [cause]
                )
                for number, each in enumerate(tries, 1):
                    write(store, lock, cell.task, cell.condition, index, number, each)


def test_the_tables_say_what_moved(stored: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["compare", A, B]) == Exit.INCONCLUSIVE
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("task-00"))
    assert row.split()[:6] == ["task-00", "3/3", "0/3", "-100.0", "pp", "0.1"]
    assert "b: no headline, only bounds: coverage 88.9% is below the gate 90.0%" in out
    assert "-16.7 pp … +0.0 pp" in out
    assert "a: no attempt lost of 9" in out
    assert f"b: 1 invalid (harness: container_lost ×1) of 9 attempts of {B}" in out


def test_json_is_the_comparison(stored: None, capsys: pytest.CaptureFixture[str]) -> None:
    run_cli(["compare", A, B, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["a"], found["b"]) == (1, A, B)
    assert found["pairs"][0]["workflow"]["difference"] is None
    assert len(found["pairs"][0]["tasks"][0]["a"]["attempts"]) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([A], "give two sweeps, or one with"),
        ([A, "nosuch"], "there is no sweep 'nosuch'"),
        ([A, "--condition-a", "condition-0", "--condition-b", "x"], "has no condition 'x'"),
        ([A, A], "would be compared with itself"),
        ([A, B, "--condition-a", "x"], "has no condition 'x'; it has condition-0"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_fault(
    stored: None, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run_cli(["compare", *arguments]) == Exit.USAGE
    assert told in capsys.readouterr().err


def test_the_gate_has_its_exit_codes(stored: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["gate", B, "--baseline", A, "--margin", "5pp"]) == Exit.REGRESSION
    out = capsys.readouterr().out
    assert "✗ lost" in out
    assert out.splitlines()[-1] == f"✗ regression: {B} against {A}"


def test_a_gate_as_json(stored: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["gate", B, "--baseline", A, "--margin", "0.05", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["decision"], found["margin"], found["scope"]) == (
        "regression",
        0.05,
        "these-tasks",
    )
    assert found["behaviours"][0]["p_lost"] == pytest.approx(0.001)


@pytest.mark.parametrize("margin", ["5%", "0", "-1pp", "100pp", "nan", "pp", "1e3"])
def test_a_margin_is_in_percentage_points(
    stored: None, capsys: pytest.CaptureFixture[str], margin: str
) -> None:
    assert run_cli(["gate", B, "--baseline", A, f"--margin={margin}"]) == Exit.USAGE
    assert "margin" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([A, "--baseline", B], "started later"),
        ([A, "--baseline", A], "its own baseline"),
        ([A, "--baseline", "nosuch"], "there is no sweep 'nosuch'"),
        ([A], "Missing option '--baseline'"),
    ],
)
def test_a_gate_without_a_baseline(
    stored: None, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run_cli(["gate", *arguments]) == Exit.USAGE
    assert told in capsys.readouterr().err


def test_a_report_against_a_baseline(stored: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["report", B, "--baseline", A]) == Exit.INCONCLUSIVE
    page = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("report: "))
    assert A in page.read_text("utf-8")
    assert run_cli(["report", B, "--baseline", "nosuch"]) == Exit.USAGE


def test_a_margin_without_pp_is_guessed(stored: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["gate", B, "--baseline", A, "--margin", "5"]) == Exit.USAGE
    assert "did you mean 5pp?" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_names_of_tasks_are_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
) -> None:
    monkeypatch.setenv("APIARY_STORE", f"file://{tmp_path}")
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "read-a-named-path-outside-the-workspace"
    make = generated._task
    monkeypatch.setattr(generated, "_task", lambda task, layer: make(f"{name}-{task[-1]}", layer))
    store = open_store(f"file://{tmp_path}")
    for start in ("2026-01-01T00:00:00Z", NOW_START):
        lock = make_lock(conditions=1, regression=1, workflow=1, attempts=4, started_at=start)
        store.put(f"sweeps/{lock.sweep}/lock-1.json", lock.to_json().encode())
        for cell in lock.cells:
            for index in range(4):
                spoilt = start == NOW_START and index
                cause = Cause.WRONG if spoilt else Cause.NONE
                write(store, lock, cell.task, cell.condition, index, 1, cause)
    run_cli(["compare", A, B])
    lines = capsys.readouterr().out.splitlines()
    for number in range(2):
        (row,) = [line for line in lines if line.startswith(f"{name}-{number} ")]
        assert row.split()[1:4] == ["4/4", "1/4", "-75.0"]
        (shown,) = [line for line in lines if line.startswith(f"{name}-{number}: a ")]
        assert shown.split()[2].isalnum()
    assert max(map(len, lines)) <= columns
    run_cli(["gate", B, "--baseline", A])
    assert any(line.startswith(f"{name}-0 ") for line in capsys.readouterr().out.splitlines())
