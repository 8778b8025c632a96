"""The fault table: what was done to a sweep, and what became of it.

As a program it runs the suite, which prints the table at its end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import pytest

PROPERTY = "fault"


@dataclass(frozen=True)
class Row:
    """One fault."""

    fault: str
    resumed: int
    """How often a command had to be given again."""
    planned: int
    counted: int
    lost: int
    twice: int
    left_over: int

    def text(self) -> str:
        """For a report."""
        return json.dumps(asdict(self))

    @classmethod
    def parsed(cls, text: object) -> Row:
        """What ``text`` wrote."""
        return cls(**json.loads(str(text)))


def shown(rows: Sequence[Row]) -> str:
    """The table."""
    heading = tuple(each.name.replace("_", " ") for each in fields(Row))
    cells = [heading, *(tuple(map(str, astuple(row))) for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(heading))]
    lines = []
    for row in cells:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join((row[0].ljust(widths[0]), *numbers)))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", *sys.argv[1:], str(Path(__file__).parent)]))
