"""The classification as a table.

``python -m tests.classification.table [group or case …]`` runs the cases, or those, and prints it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.classification.cases import Row
from tests.classification.every import CASES
from tests.classification.running import run

HEAD = ("case", "verdict", "blame", "cause", "phase", "tried again", "s")


def table(rows: Iterable[Row]) -> str:
    """Rows as Markdown."""
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(HEAD))]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    name = f"{row.group}: {row.name}"
    if row.found is None:
        return (name, "see below", "", "", "", "", f"{row.seconds:.1f}")
    verdict, blame, cause, phase, again = (str(word) for word in row.found)
    return (name, verdict, blame, cause, phase, again, f"{row.seconds:.1f}")


def faults(rows: Iterable[Row]) -> str:
    """What was wrong with which; empty: nothing."""
    return "".join(
        f"\n{row.group}: {row.name}: expected {' '.join(row.expected)}, "
        f"found {' '.join(row.found or ('another fault',))}\n{row.fault}\n"
        for row in rows
        if not row.is_right
    )


def main(groups: list[str]) -> int:
    """Runs the cases of these groups or names, or all."""
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
    chosen = [each for each in CASES if not groups or each.group in groups or each.name in groups]
    with tempfile.TemporaryDirectory(prefix="apiary-classification-") as folder:
        rows = run(chosen, Path(folder))
    sys.stdout.write(f"{table(rows)}\n{faults(rows)}")
    return int(any(not row.is_right for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
