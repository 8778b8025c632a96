"""From what the library reads to HTML. Pure, the comparison apart, which reads its two sweeps."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.report.comparison import compare as compared
from scheduler.report.names import counted, short_name
from scheduler.report.page import layers
from scheduler.report.rows import VERDICTS
from scheduler.report.summary import CauseCount, Summary
from scheduler.report.tables import interval_text, rate_text
from scheduler.report.transcript import Line, transcript, visible
from scheduler.serve.library import SWEEPS_AT_ONCE, AttemptPage, Library, SweepPage, SweepRow
from scheduler.serve.selection import ROWS, Selection, causes
from scheduler.templates import Templates
from workers.contract.outcome import Phase
from workers.contract.result import TryRecord

LINE_CHARACTERS = 4000
"""Shown of one message unless the whole is asked for."""

TIMELINE = 1000
"""Width of the picture of a try's phases, in its own units."""


@dataclass(frozen=True)
class BlameRow:
    """How often tries ended for one cause."""

    blame: str
    cause: str
    conditions: tuple[str, ...]
    tasks: int
    tries: int
    example: str
    """An attempt that shows it."""


@functools.cache
def _templates() -> Templates:
    filters: dict[str, Callable[..., Any]] = {
        "rate": rate_text,
        "interval": interval_text,
        "short": short_name,
        "visible": visible,
        "counted": counted,
    }
    return Templates("scheduler.serve", filters, "templates")


def asset(name: str) -> str:
    """A style sheet or script of the pages."""
    return (
        importlib.resources.files("scheduler.serve").joinpath("templates", name).read_text("utf-8")
    )


def sweeps(rows: list[SweepRow], skip: int, url: str) -> str:
    """The list of all sweeps."""
    return _templates().render(
        "sweeps.html",
        rows=rows,
        url=url,
        newer=max(0, skip - SWEEPS_AT_ONCE) if skip else None,
        older=skip + SWEEPS_AT_ONCE if len(rows) == SWEEPS_AT_ONCE else None,
        live=any(row.settled < row.planned for row in rows),
    )


def sweep(page: SweepPage, wanted: Selection) -> str:
    """One sweep: figures, matrix, causes, and the attempts that are wished for."""
    rows = wanted.rows(page.results)
    return _templates().render(
        "sweep.html",
        page=page,
        summary=page.summary,
        settled=page.results.settled,
        planned=page.results.planned,
        layers=layers(page.summary),
        names=list(dict.fromkeys(each.condition for each in page.summary.conditions)),
        rated=any(each.workflow is not None for each in page.summary.conditions),
        kept=behaviours_kept(page.summary),
        blames=blames(page.summary),
        wanted=wanted,
        rows=wanted.page(rows),
        found=len(rows),
        at_once=ROWS,
        verdicts=VERDICTS,
        causes=causes(page.results),
        tasks=list(dict.fromkeys(cell.task for cell in page.results.cells)),
        conditions=list(dict.fromkeys(cell.condition for cell in page.results.cells)),
        live=any(attempt.open for cell in page.results.cells for attempt in cell.attempts),
    )


def attempt(page: AttemptPage, *, whole: bool) -> str:
    """One attempt: transcript, dimensions, phases, ledger, files and logs of one try."""
    record = None if page.chosen is None else page.found.tries[page.chosen]
    lines = () if page.evidence is None else transcript(page.evidence)
    return _templates().render(
        "attempt.html",
        page=page,
        found=page.found,
        record=record,
        counts=page.found.result is not None and page.found.result.try_ == page.chosen,
        lines=[(line, *_cut(line, whole=whole)) for line in lines],
        whole=whole,
        phases=[] if record is None else timeline(record),
        width=TIMELINE,
        dimensions=[]
        if record is None
        else sorted(record.dimensions.items(), key=lambda item: (item[1], item[0])),
        files=page.found.files.get(page.chosen or "", ()),
        live=False,
    )


def compare(library: Library, a: str, b: str) -> str:
    """Two sweeps side by side; the form that asks for them where one is not named.

    Raises:
        MissingPageError: there is no such sweep.
        NotComparableError: they have nothing in common.
    """
    names = library.names()
    comparison = compared(library.side(a), library.side(b)) if a and b else None
    return _templates().render(
        "compare.html", names=names, a=a, b=b, comparison=comparison, live=False
    )


def message(text: str) -> str:
    """A page that says one thing."""
    return _templates().render("message.html", text=text, live=False)


def enter(*, wrong: bool) -> str:
    """The form that asks for the token."""
    return _templates().render("enter.html", wrong=wrong, live=False)


def behaviours_kept(summary: Summary) -> dict[str, tuple[int, int]]:
    """Condition's digest to its regression tasks that passed in every attempt, and how many it has.

    Empty where the sweep has none.
    """
    found: dict[str, tuple[int, int]] = {}
    for cell in summary.cells:
        if cell.layer == "regression":
            kept, all_ = found.get(cell.condition_digest, (0, 0))
            passed = cell.rates.passed == cell.rates.planned
            found[cell.condition_digest] = (kept + passed, all_ + 1)
    return found


def blames(summary: Summary) -> list[BlameRow]:
    """What was not a pass, by cause over all tasks, most frequent first."""
    found: dict[tuple[str, str], list[CauseCount]] = {}
    for row in summary.causes:
        found.setdefault((row.blame, row.cause), []).append(row)
    rows = [
        BlameRow(
            blame=blame,
            cause=cause,
            conditions=tuple(dict.fromkeys(each.condition for each in counts)),
            tasks=len({each.task for each in counts}),
            tries=sum(each.tries for each in counts),
            example=counts[0].example,
        )
        for (blame, cause), counts in found.items()
    ]
    return sorted(rows, key=lambda row: -row.tries)


def timeline(record: TryRecord) -> list[tuple[str, float, float, float]]:
    """(phase, seconds, start, width) of each phase, the last two in units of ``TIMELINE``."""
    total = sum(record.phase_seconds.values())
    rows: list[tuple[str, float, float, float]] = []
    at = 0.0
    for phase in Phase:
        seconds = record.phase_seconds.get(phase.value)
        if seconds is None:
            continue
        width = TIMELINE * seconds / total if total else 0.0
        rows.append((phase.value, seconds, round(at, 2), round(max(width, 1.0), 2)))
        at += width
    return rows


def _cut(line: Line, *, whole: bool) -> tuple[str, int]:
    """The text to show, and how many characters are left out."""
    left_out = 0 if whole else max(0, len(line.text) - LINE_CHARACTERS)
    return (line.text[:LINE_CHARACTERS] if left_out else line.text), left_out
