from __future__ import annotations

from scheduler.serve.selection import ROWS, Selection, causes
from tests.scheduler.report.builders import cell, results

RESULTS = results(
    cell("p f iip iii -", condition="one"),
    cell("p f f p p", condition="two", task="farewell"),
)


def of(**wish: str) -> list[str]:
    return [row.verdict for row in Selection.read(wish).rows(RESULTS)]


def test_everything_is_listed_worst_first() -> None:
    assert of() == ["open", "invalid", *["fail"] * 3, *["pass"] * 5]


def test_each_wish_narrows() -> None:
    assert of(verdict="invalid") == ["invalid"]
    assert of(cause="wrong", condition="one") == ["fail"]
    assert of(task="buzz-native/farewell", verdict="pass") == ["pass"] * 3
    first = Selection().rows(RESULTS)[3]
    assert Selection.read({"attempt": first.attempt[:6].upper()}).rows(RESULTS) == [first]
    assert of(verdict="nonsense") == []


def test_a_page_holds_so_many_rows() -> None:
    many = results(cell(" ".join(["p"] * (ROWS + 5))))
    rows = Selection().rows(many)
    assert len(Selection().page(rows)) == ROWS
    assert len(Selection.read({"skip": str(ROWS)}).page(rows)) == 5
    assert len(Selection.read({"skip": "-3"}).page(rows)) == ROWS
    for digits in (30, 5000):
        assert Selection.read({"skip": "9" * digits}).page(rows) == []


def test_a_wish_travels_in_a_query_string() -> None:
    wish = Selection.read({"task": "a&b=c", "skip": "100", "other": "1"})
    assert wish.query() == "task=a%26b%3Dc"
    assert wish.query(skip=200, verdict="fail") == "verdict=fail&task=a%26b%3Dc&skip=200"


def test_the_causes_that_attempts_ended_with() -> None:
    assert causes(RESULTS) == ["container_lost", "none", "wrong"]
