"""The security page holds the table that the tests make, and names nothing that is not there."""

from __future__ import annotations

import re
from collections import Counter

from tests.security import table


def test_the_page_holds_the_table() -> None:
    assert table.PAGE.read_text("utf-8").endswith(f"\n\n{table.render()}"), (
        "run python -m tests.security.table --write"
    )


def test_every_row_has_an_id_of_its_own_and_none_is_missing() -> None:
    found = table.rows()
    for letter in table.TITLES:
        numbers = [int(row.id[1:]) for row in found if row.id[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter


def test_every_row_names_tests_that_are_there_and_no_test_twice() -> None:
    named = [test for row in table.rows() for test in row.tests]
    for test in named:
        file, name = test.split("::")
        assert name in table.tests_in(file), test
    assert [test for test, times in Counter(named).items() if times > 1] == []


def test_every_test_of_a_hostile_thing_is_a_row() -> None:
    files = (path.name for path in (table.TESTS / "security").glob("test_*.py"))
    for file in sorted(f"security/{name}" for name in files if name != "test_page.py"):
        tests = table.tests_in(file).items()
        assert [name for name, text in tests if not table.ID.match(text)] == [], file


def test_every_shipped_sweep_is_sealed_as_the_page_says() -> None:
    sweeps = sorted((table.TESTS.parent / "manifests/sweeps").glob("*.yaml"))
    assert sweeps
    for sweep in sweeps:
        assert re.search(r"^network: sealed$", sweep.read_text("utf-8"), re.MULTILINE), sweep


def test_the_page_refers_to_rows_that_there_are() -> None:
    prose = table.PAGE.read_text("utf-8").partition(table.HEADING)[0]
    known = {row.id for row in table.rows()}
    named = set(re.findall(r"\b([TAIMN][0-9]{1,2})\b", prose))
    assert named
    assert named <= known
