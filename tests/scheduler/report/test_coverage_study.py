"""The table of ``docs/statistics.md`` against the command that prints it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler.report import coverage_study
from scheduler.report.coverage_study import (
    ATTEMPTS,
    PAIR_ATTEMPTS,
    TASKS,
    main,
    study_pairs,
    study_rates,
)
from scheduler.report.intervals import clustered

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "statistics.md"
ROW = re.compile(r"^\| (\d+) \| (\d+) \| ([\d.]+)% \|.*\| ([\d.]+) \|$", re.MULTILINE)


def documented(title: str) -> dict[tuple[int, int], tuple[float, float]]:
    """(T, k) to (coverage, width) of one of the document's tables."""
    part = DOCUMENT.read_text("utf-8").split(f"{title}:\n\n")[1].split("\n\n")[0]
    return {
        (int(tasks), int(k)): (float(coverage) / 100, float(width))
        for tasks, k, coverage, width in ROW.findall(part)
    }


def test_the_documented_coverage_is_what_was_promised() -> None:
    rates = documented("Rates: `clustered`, as reports have it")
    assert rates.keys() == {(tasks, k) for tasks in TASKS for k in ATTEMPTS}
    assert all(0.93 <= coverage <= 0.97 for coverage, _ in rates.values())
    for title in ("Differences over such tasks: `paired`", "Differences on these tasks: `fixed`"):
        differences = documented(title)
        assert differences.keys() == {(tasks, k) for tasks in TASKS for k in PAIR_ATTEMPTS}
        assert all(coverage >= 0.93 for coverage, _ in differences.values())


@pytest.mark.long
def test_a_smaller_study_comes_to_the_documented_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_study, "ATTEMPTS", (1, 5))
    monkeypatch.setattr(coverage_study, "PAIR_ATTEMPTS", (1, 5))
    monkeypatch.setattr(coverage_study, "TASKS", (10, 30))
    for title, rows in (
        ("Rates: `clustered`, as reports have it", study_rates(clustered, 300, 2)),
        ("Differences over such tasks: `paired`", study_pairs("such", 150, 2)),
        ("Differences on these tasks: `fixed`", study_pairs("these", 150, 2)),
    ):
        wanted = documented(title)
        for row in rows:
            coverage, width = wanted[row.tasks, row.attempts]
            # 15 kinds of 300 runs, or 30 of 150: a standard error of 0.3 points.
            assert row.mean == pytest.approx(coverage, abs=0.013)
            assert row.width == pytest.approx(width, rel=0.03)


@pytest.mark.long
def test_the_command_prints_the_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coverage_study, "ATTEMPTS", (1,))
    monkeypatch.setattr(coverage_study, "PAIR_ATTEMPTS", (1,))
    monkeypatch.setattr(coverage_study, "TASKS", (10,))
    main(["--runs", "3"])
    first = capsys.readouterr().out
    assert len(ROW.findall(first)) == 4
    main(["--runs", "3"])
    assert capsys.readouterr().out == first
