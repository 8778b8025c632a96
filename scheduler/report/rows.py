"""One line for each attempt, as lists of attempts show it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.report.results import AttemptResults, CellResults, SweepResults

VERDICTS = ("pass", "fail", "invalid", "open")
"""Of a row, the one that needs a look least first."""


@dataclass(frozen=True)
class Row:
    """One attempt in the list."""

    attempt: str
    task: str
    condition: str
    index: int
    verdict: str
    """One of ``VERDICTS``."""
    blame: str
    cause: str
    detail: str
    lost: tuple[str, ...]
    """Dimensions below 1."""
    tries: int
    seconds: float
    cost_usd: float
    ended_at: str


def rows_of(results: SweepResults) -> Iterator[Row]:
    """Every attempt, in the sweep's order."""
    for cell in results.cells:
        for attempt in cell.attempts:
            yield row_of(cell, attempt)


def row_of(cell: CellResults, attempt: AttemptResults) -> Row:
    """An attempt as its result says, else its last try."""
    record = attempt.last
    if record is None:
        return Row(
            attempt.attempt, cell.task, cell.condition, attempt.index, "open", "", "", "", (), 0,
            0.0, 0.0, "",
        )  # fmt: skip
    return Row(
        attempt=attempt.attempt,
        task=cell.task,
        condition=cell.condition,
        index=attempt.index,
        verdict="open" if attempt.open else record.verdict.value,
        blame=record.blame.value,
        cause=record.cause.value,
        detail=record.detail,
        lost=tuple(name for name, value in record.dimensions.items() if value < 1),
        tries=len(attempt.tries),
        seconds=sum(record.phase_seconds.values()),
        cost_usd=sum(each.usage.cost_usd for each in attempt.tries),
        ended_at=record.ended_at,
    )
