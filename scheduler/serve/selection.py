"""Which attempts of a sweep are listed, as the page's form asks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self
from urllib.parse import urlencode

from scheduler.report.results import SweepResults
from scheduler.report.rows import VERDICTS, Row, rows_of

ROWS = 100
"""Attempts on one page."""
DIGITS = 9
"""Read of a number in a query: no list is longer, and Python refuses thousands of digits."""


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
        words = {
            each.name: query.get(each.name, "").strip()
            for each in fields(cls)
            if each.name != "skip"
        }
        return cls(**words, skip=number_of(query.get("skip", "")))  # all but skip are texts

    def query(self, **changes: str | int) -> str:
        """The query string of this wish with changes."""
        wish = replace(self, **({"skip": 0} | changes))  # type: ignore[arg-type]
        return urlencode(
            {each.name: value for each in fields(wish) if (value := getattr(wish, each.name))}
        )

    def rows(self, results: SweepResults) -> list[Row]:
        """All attempts that are wished for: what is no pass first, then in the sweep's order."""
        found = filter(self._wants, rows_of(results))
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


def number_of(text: str) -> int:
    """The number that a query has, a longer one by its first digits; 0 where it has none."""
    return int(text[:DIGITS]) if text.isascii() and text.isdigit() else 0


def causes(results: SweepResults) -> list[str]:
    """Every cause that an attempt of the sweep ended with last."""
    return sorted(set(_causes(results)))


def _causes(results: SweepResults) -> Iterator[str]:
    for cell in results.cells:
        for attempt in cell.attempts:
            if attempt.last is not None:
                yield attempt.last.cause.value
