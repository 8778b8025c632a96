from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.dataset.places import PlaceError, TaskTexts, constants, select, stands_in
from tests.scheduler.dataset.builders import edit, make_task, read_task

DATA = {
    "rows": [
        {"name": "a", "role": "user", "tags": ["x", "y"], "on": True},
        {"name": "b", "role": "bot", "tags": [], "on": False},
    ],
    "map": {"k": 1, "l": "two"},
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("rows.name", ["a", "b"]),
        ("rows[role=bot].name", ["b"]),
        ("rows[role!=bot].name", ["a"]),
        ("rows[on=true].name", ["a"]),
        ("rows[role=bot]#", [1]),
        ("rows#", [2]),
        ("rows.tags", ["x", "y"]),
        ("rows.0.tags.1", ["y"]),
        ("rows.1.tags", []),
        ("map.k", [1]),
        ("map.keys", ["k", "l"]),
        ("map.values", [1, "two"]),
        ("none", [None]),
    ],
)
def test_paths(path: str, expected: list[object]) -> None:
    assert select(DATA, path) == expected


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "no 'nothing'; there are rows, map, none"),
        ("rows.nothing", "no 'nothing'"),
        ("rows.5", "no item 5 among 2"),
        ("none.x", "nothing has a 'x' there"),
        ("map", "ends at a mapping"),
        ("rows", "ends at a mapping"),
        ("rows[role", "not a path from character 5 on"),
        ("rows!", "not a path"),
    ],
)
def test_places_that_are_not_there(path: str, message: str) -> None:
    with pytest.raises(PlaceError, match=message):
        select(DATA, path)


def test_constants_are_read_and_never_run() -> None:
    lines = ("import os", "A = 1_000", 'B = ("x",)', "C = os.sep", "D: int = 5", "F: int", "1 / 0")
    source = "\n".join((*lines, 'E = {"a": [2.5]}'))
    assert constants(source) == {"A": 1000, "B": ("x",), "D": 5, "E": {"a": [2.5]}}
    with pytest.raises(PlaceError, match="line 2: not Python"):
        constants("A = 1\nB = (\n")


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (352345, "352,345 in all", True),
        (352345, "ANSWER = 352_345", True),
        (352345, "1352345", False),
        (352345, "352,3456", False),
        ("17", "North 17.", True),
        ("17", "170 or 217", False),
        ("expense", "expenses", True),
        ("Expense", "expenses", False),
        (True, "true", True),
        ("a\nb", "x a\nb y", True),
    ],
)
def test_numbers_stand_alone_and_texts_anywhere(
    value: str | int, text: str, expected: bool
) -> None:
    assert stands_in(value, text) is expected


def test_a_task_as_places(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    edit(
        folder / "fixture.yaml",
        "user_display_name: Grace Ada Hill\n",
        "directory_ranges:\n  - {prefix: u-, first: 1, last: 3, width: 2, role: user}\n",
    )
    texts = TaskTexts(folder, read_task(folder))
    assert texts.values("fixture:entries.name") == ["u-01", "u-02", "u-03"]
    assert texts.values("verify:ANSWER") == ["GAMMA", "40"]
    assert texts.text("verify:ANSWER") == "GAMMA\n40"
    assert texts.text("instruction.md").startswith("GAMMA request")
    for place in ("nothing.md", "../small/instruction.md", "/etc/passwd"):
        with pytest.raises(PlaceError, match="no file"):
            texts.text(place)
    with pytest.raises(PlaceError, match="expected fixture"):
        texts.values("instruction.md")


def test_a_harbor_task_has_no_fixture_to_look_into(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    (folder / "fixture.yaml").unlink()
    with pytest.raises(PlaceError, match="no 'entries'"):
        TaskTexts(folder, read_task(folder)).values("fixture:entries.name")
