"""A ``Summary`` as CSV: one row a cell, canaries last."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from scheduler.report.summary import CellScore, Summary

COLUMNS = (
    "sweep",
    "condition",
    "condition_digest",
    "canary",
    "task",
    "task_digest",
    "layer",
    "planned",
    "passed",
    "failed",
    "invalid",
    "open",
    "tries",
    "invalid_tries",
    "coverage",
    "strict",
    "valid_only",
    "low",
    "high",
    "interval_low",
    "interval_high",
    "mean_reward",
    "lost_dimensions",
    "calls",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "unknown_cost_calls",
    "trial_seconds",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "uncached_cost_usd",
)
"""Columns are added at the end and keep their meaning."""
RATES = COLUMNS[7:19]
SPENT = COLUMNS[23:]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(summary: Summary) -> str:
    """The whole document, RFC 4180, with a heading line; empty fields are unknown."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    kinds = {row.condition: row.kind for row in summary.canaries if row.kind != "all"}
    for cells, canary in ((summary.cells, False), (summary.canary_cells, True)):
        for cell in cells:
            kind = kinds.get(cell.condition, "") if canary else ""
            writer.writerow(_row(summary.sweep, kind, cell))
    return out.getvalue()


def _row(sweep: str, canary: str, cell: CellScore) -> Iterator[object]:
    yield _text(sweep)
    yield _text(cell.condition)
    yield cell.condition_digest
    yield canary
    yield _text(cell.task)
    yield cell.task_digest
    yield cell.layer
    rates = cell.rates.model_dump()
    for name in RATES:
        yield "" if rates[name] is None else rates[name]
    yield "" if cell.interval is None else cell.interval.low
    yield "" if cell.interval is None else cell.interval.high
    yield "" if cell.mean_reward is None else cell.mean_reward
    yield _text(" ".join(f"{name}:{count}" for name, count in cell.lost_dimensions.items()))
    spent = cell.spent.model_dump()
    for name in SPENT:
        yield spent[name]


def _text(value: str) -> str:
    """A name that a spreadsheet takes for a name: what begins like a formula is quoted."""
    return f"'{value}" if value.startswith(_FORMULA) else value
