from __future__ import annotations

import csv
import io
from dataclasses import replace

from scheduler.report.csv_rows import COLUMNS, csv_text
from scheduler.report.results import SweepResults
from scheduler.report.score import score
from tests.scheduler.report.builders import cell, results


def rows(made: SweepResults) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(score(made)))))


def test_a_row_has_the_counts_of_its_cell() -> None:
    (row,) = rows(results(cell("p f ip iii", dimensions={"reply": 0.0})))
    assert tuple(row) == COLUMNS
    counts = [row[name] for name in ("planned", "passed", "failed", "invalid", "open", "tries")]
    assert counts == ["4", "2", "1", "1", "0", "7"]
    assert (row["strict"], row["coverage"], row["canary"]) == ("0.5", "0.75", "")
    assert float(row["valid_only"]) == 2 / 3
    assert row["lost_dimensions"] == "reply:3"


def test_what_is_unknown_is_empty_and_not_zero() -> None:
    (row,) = rows(results(cell("iii")))
    assert [row[name] for name in ("valid_only", "interval_low", "mean_reward")] == ["", "", ""]


def test_canaries_come_last_and_are_marked() -> None:
    canary = replace(cell("f", condition="canary-nop"), canary="nop")
    found = rows(results(canary, cell("p")))
    assert [(row["condition"], row["canary"]) for row in found] == [
        ("solver", ""),
        ("canary-nop", "nop"),
    ]


def test_names_cannot_break_the_table_nor_run_as_a_formula() -> None:
    (row,) = rows(results(cell("p", condition='=cmd|"x"\n,a')))
    assert row["condition"] == '\'=cmd|"x"\n,a'


def test_a_sweep_without_cells_has_a_heading() -> None:
    assert csv_text(score(results())) == ",".join(COLUMNS) + "\r\n"
