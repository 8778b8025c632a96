"""Which attempts of a sweep are listed, as the page's form asks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self
from urllib.parse import urlencode

from scheduler.report.results import AttemptResults, CellResults, SweepResults

ROWS = 100
"""Attempts on one page."""

VERDICTS = ("pass", "fail", "invalid", "open")


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


@dataclass(frozen=True)
class Selection:
    """The wish; an empty text wishes for everything."""

    verdict: str = ""
    cause: str = ""
    task: str = ""
    condition: str = ""
    attempt: str = ""
    """The first digits of an id."""
    skip: int = 0

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """From a query string; what it does not know is left alone."""
        skip = query.get("skip", "")
        words = {
            each.name: query.get(each.name, "").strip()
            for each in fields(cls)
            if each.name != "skip"
        }
        return cls(
            **words, skip=int(skip) if skip.isascii() and skip.isdigit() else 0
        )  # all but skip are texts

    def query(self, **changes: str | int) -> str:
        """The query string of this wish with changes."""
        wish = replace(self, **({"skip": 0} | changes))  # type: ignore[arg-type]
        return urlencode(
            {each.name: value for each in fields(wish) if (value := getattr(wish, each.name))}
        )

    def rows(self, results: SweepResults) -> list[Row]:
        """All attempts that are wished for: what is no pass first, then in the sweep's order."""
        found = [
            row
            for cell in results.cells
            for attempt in cell.attempts
            if self._wants(row := _row(cell, attempt))
        ]
        return sorted(found, key=lambda row: VERDICTS[::-1].index(row.verdict))

    def page(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Those of them that one page shows."""
        return rows[self.skip : self.skip + ROWS]

    def _wants(self, row: Row) -> bool:
        return (
            self.verdict in ("", row.verdict)
            and self.cause in ("", row.cause)
            and self.task in ("", row.task)
            and self.condition in ("", row.condition)
            and row.attempt.startswith(self.attempt.lower())
        )


def causes(results: SweepResults) -> list[str]:
    """Every cause that an attempt of the sweep ended with last."""
    return sorted(set(_causes(results)))


def _causes(results: SweepResults) -> Iterator[str]:
    for cell in results.cells:
        for attempt in cell.attempts:
            if attempt.last is not None:
                yield attempt.last.cause.value


def _row(cell: CellResults, attempt: AttemptResults) -> Row:
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
