"""A ``Summary`` and its attempts as one static page, and the report's place in the store.

The page needs no server and no network: style and pictures are inside it. Everything that
comes from a run is escaped.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape

from scheduler.report.names import short_name
from scheduler.report.results import AttemptResults, CellResults, SweepResults
from scheduler.report.summary import Summary
from scheduler.report.tables import interval_text, rate_text
from workers.contract.outcome import Phase
from workers.storage.interface import Store

MAX_ATTEMPTS = 2000
"""Attempts listed one by one; beyond, passes are left out first."""


@dataclass(frozen=True)
class AttemptRow:
    """One line of the page's list of attempts."""

    attempt: str
    task: str
    condition: str
    index: int
    verdict: str
    """``pass``, ``fail``, ``invalid`` or ``open``."""
    blame: str
    cause: str
    detail: str
    lost: str
    """Dimensions below 1."""
    tries: int
    seconds: float
    phases: tuple[tuple[str, float, float], ...]
    """(phase, seconds, share of the attempt's time) in order."""


def report_keys(sweep: str) -> tuple[str, str]:
    """The store's keys of the page and of the summary."""
    return f"sweeps/{sweep}/report/report.html", f"sweeps/{sweep}/report/summary.json"


def write_report(store: Store, results: SweepResults, summary: Summary) -> str:
    """Writes page and summary over those of an earlier moment; blocks.

    Returns:
        Where the page is: a path for a ``file://`` store, else a URL.

    Raises:
        StoreError: the store refused.
    """
    page, document = report_keys(results.sweep)
    store.put(document, summary.to_json().encode() + b"\n")
    store.put(page, render(results, summary).encode())
    return f"{store.url.partition('?')[0].removeprefix('file://').rstrip('/')}/{page}"


def render(results: SweepResults, summary: Summary) -> str:
    """The page as HTML. Pure."""
    template = (
        importlib.resources.files("scheduler.report").joinpath("page.html").read_text("utf-8")
    )
    environment = Environment(
        loader=DictLoader({"page.html": template}),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=rate_text, interval=interval_text, short=short_name)
    rows = sorted(_rows(results), key=lambda row: row.verdict == "pass")
    return environment.get_template("page.html").render(
        summary=summary,
        conditions=[condition.condition for condition in summary.conditions],
        layers=_layers(summary),
        rows=rows[:MAX_ATTEMPTS],
        left_out=max(0, len(rows) - MAX_ATTEMPTS),
        some_open=any(condition.rates.open for condition in summary.conditions),
        settled=results.settled,
        planned=results.planned,
        phases=[phase.value for phase in Phase],
    )


def _layers(summary: Summary) -> dict[str, dict[str, dict[str, object]]]:
    """Layer, task and condition to cell, in the summary's order."""
    layers: dict[str, dict[str, dict[str, object]]] = {}
    for cell in summary.cells:
        layers.setdefault(cell.layer, {}).setdefault(cell.task, {})[cell.condition] = cell
    return layers


def _rows(results: SweepResults) -> Iterator[AttemptRow]:
    for cell in results.cells:
        for attempt in cell.attempts:
            yield _row(cell, attempt)


def _row(cell: CellResults, attempt: AttemptResults) -> AttemptRow:
    record = attempt.last
    seconds = sum(record.phase_seconds.values()) if record else 0.0
    times = record.phase_seconds if record else {}
    return AttemptRow(
        attempt=attempt.attempt,
        task=cell.task,
        condition=cell.condition,
        index=attempt.index,
        verdict="open" if attempt.open or record is None else record.verdict.value,
        blame=record.blame.value if record else "",
        cause=record.cause.value if record else "",
        detail=record.detail if record else "",
        lost=", ".join(name for name, value in record.dimensions.items() if value < 1)
        if record
        else "",
        tries=len(attempt.tries),
        seconds=seconds,
        phases=tuple(
            (phase.value, times[phase.value], times[phase.value] / seconds)
            for phase in Phase
            if seconds > 0 and times.get(phase.value)
        ),
    )
