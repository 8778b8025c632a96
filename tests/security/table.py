"""The table of threats, what stands between, and the test that shows it.

``python -m tests.security.table`` prints it, ``--write`` puts it into the page. A test of this
folder whose docstring begins with an id states a row: ``id | threat | what stands between``.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.security.elsewhere import ELSEWHERE, Row

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs/security.md"
HEADING = "## What stands between, and what shows it"
ID = re.compile(r"([TAIMN])([0-9]+) \|")

TITLES = {
    "T": "A hostile task",
    "A": "A hostile agent, or code that it runs",
    "I": "A hostile image",
    "M": "A hostile answer of a model or its provider",
    "N": "A hostile neighbour on the node",
}
"""Letter of an id to who does it, in the page's order."""


@functools.cache
def tests_in(file: str) -> dict[str, str]:
    """Name to docstring of a file's tests; the file's path is below ``tests``."""
    body = ast.parse((TESTS / file).read_text("utf-8")).body
    return {
        node.name: ast.get_docstring(node) or ""
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _own() -> Iterator[Row]:
    for path in sorted((TESTS / "security").glob("test_*.py")):
        file = path.relative_to(TESTS).as_posix()
        for name, text in tests_in(file).items():
            if ID.match(text):
                number, threat, barrier = " ".join(text.split()).split(" | ")
                yield Row(number, threat, barrier, (f"{file}::{name}",))


def rows() -> list[Row]:
    """Every row, by its id."""
    letters = list(TITLES)
    found = [*_own(), *ELSEWHERE]
    return sorted(found, key=lambda row: (letters.index(row.id[0]), int(row.id[1:])))


def render() -> str:
    """The tables in Markdown, one for each of those who do it."""
    found = rows()
    shown = {test for row in found for test in row.tests}
    lines = [
        HEADING,
        "",
        f"{len(found)} threats and {len(shown)} tests, whose files are below `tests`. Printed by",
        "`python -m tests.security.table`, from the tests themselves; a test keeps it current.",
    ]
    for letter, title in TITLES.items():
        lines += ["", f"### {title}", "", "| id | threat | what stands between | shown by |"]
        lines.append("|---|---|---|---|")
        for row in found:
            if row.id[0] == letter:
                tests = "<br>".join(f"`{test}`" for test in row.tests)
                lines.append(f"| {row.id} | {row.threat} | {row.barrier} | {tests} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prints the table, or writes it."""
    if "--write" in sys.argv[1:]:
        before = PAGE.read_text("utf-8").partition(HEADING)[0]
        PAGE.write_text(before + render(), "utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main()
