"""A ``Summary`` and its attempts as one static page, and the report's place in the store.

The page needs no server and no network: style and pictures are inside it. Everything that
comes from a run is escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.lock import Lock, lock_key, read_locks
from scheduler.report.charts import HEIGHT, WIDTH, cost_points, curves, failure_bars
from scheduler.report.comparison_format import Comparison
from scheduler.report.names import counted, place_of, short_name
from scheduler.report.results import SweepResults
from scheduler.report.rows import rows_of
from scheduler.report.summary import CellScore, Summary
from scheduler.report.tables import dollars_text, interval_text, rate_text
from scheduler.report.times import phase_times, timeline
from scheduler.report.transcript import visible
from scheduler.templates import Templates, style
from workers.contract.outcome import Blame
from workers.storage.interface import Store

MAX_ATTEMPTS = 2000
"""Attempts listed one by one; beyond, passes are left out first."""

MAX_CAUSES = 200

SHOWN_K = 5
"""Values of k in the table, the first and the last among them; the picture has all."""


def report_keys(sweep: str) -> tuple[str, str]:
    """The store's keys of the page and of the summary."""
    return f"sweeps/{sweep}/report/report.html", f"sweeps/{sweep}/report/summary.json"


def write_report(
    store: Store, results: SweepResults, summary: Summary, comparison: Comparison | None = None
) -> str:
    """Writes page and summary over those of an earlier moment; blocks.

    Args:
        store: where the sweep is.
        results: of the sweep.
        summary: of the results.
        comparison: with a baseline, which is side a of it.

    Returns:
        Where the page is: a path for a ``file://`` store, else a URL.

    Raises:
        LockError: the sweep has no lock.
        StoreError: the store refused.
    """
    page, document = report_keys(results.sweep)
    lock = read_locks(store, results.sweep)[-1]
    store.put(document, summary.to_json().encode() + b"\n")
    store.put(page, render(results, summary, lock, comparison).encode("utf-8", "replace"))
    return place_of(store.url, page)


def render(
    results: SweepResults,
    summary: Summary,
    lock: Lock | None = None,
    comparison: Comparison | None = None,
) -> str:
    """The page as HTML; what is not given is left out of it. Pure."""
    filters: dict[str, Callable[..., Any]] = {
        "rate": rate_text,
        "interval": interval_text,
        "short": short_name,
        "visible": visible,
        "counted": counted,
        "dollars": dollars_text,
    }
    rows = sorted(rows_of(results), key=lambda row: row.verdict == "pass")
    shown_curves, most_k = curves(summary)
    costs, most_cost = cost_points(summary)
    return Templates("scheduler.report", filters).render(
        "page.html",
        style=style(),
        width=WIDTH,
        height=HEIGHT,
        summary=summary,
        conditions=list(dict.fromkeys(each.condition for each in summary.conditions)),
        layers=layers(summary),
        ks=shown_ks(most_k),
        curves=shown_curves,
        most_k=most_k,
        comparison=comparison,
        costs=costs,
        most_cost=most_cost,
        failures=failure_bars(summary),
        blames=[each.value for each in Blame if any(c.blame == each for c in summary.causes)],
        causes_shown=MAX_CAUSES,
        times=phase_times(results),
        timeline=timeline(results),
        lock=lock,
        place="" if lock is None else f"{lock.store}/{lock_key(lock.sweep, lock.number)}",
        rows=rows[:MAX_ATTEMPTS],
        left_out=max(0, len(rows) - MAX_ATTEMPTS),
        some_open=any(condition.rates.open for condition in summary.conditions),
        settled=results.settled,
        planned=results.planned,
    )


def layers(summary: Summary) -> dict[str, dict[str, dict[str, CellScore]]]:
    """Layer, task and condition to cell, in the summary's order."""
    found: dict[str, dict[str, dict[str, CellScore]]] = {}
    for cell in summary.cells:
        found.setdefault(cell.layer, {}).setdefault(cell.task, {})[cell.condition] = cell
    return found


def shown_ks(most: int) -> list[int]:
    """The values of k that the table names: powers of two, and the largest."""
    return sorted({*(2**n for n in range(SHOWN_K - 1) if 2**n <= most), most}) if most else [1]
