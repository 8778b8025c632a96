"""The screen of a sweep in terminals of every size."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from scheduler.watch.layout import share
from scheduler.watch.sweep_reader import Moment
from scheduler.watch.sweep_screen import sweep_lines, sweep_screen
from tests.scheduler.watch.builders import drawn, sweep_document


def moment(standing: Any = "running", still_s: float = 0.0, **changes: Any) -> Moment:
    return Moment(sweep_document(**changes), standing, still_s)


def test_eighty_columns_and_twenty_four_lines_show_every_section() -> None:
    lines = drawn(sweep_screen(moment(), 80, 24), 80)
    assert len(lines) == 24
    text = "\n".join(lines)
    for expected in (
        "running, driver 1 on box",
        "10/24 settled (42 %), 6.0/min, ETA 2 min 20 s",
        "$0.4200 spent, 25 % of the budget, 12 calls, 45.3k tokens in, 900 out",
        "luna is down: what uses it waits; sonnet is throttled by its provider",
        "model: no_reply",
        "abababab greet × solver: said nothing",
        "takes nothing: the disk is full",
        "greet × solver #1",
        "q leaves; the sweep goes on",
    ):
        assert expected in text, expected


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (200, 60), (40, 12), (20, 6), (9, 3), (1, 1)]
)
@pytest.mark.parametrize("many", [0, 300])
def test_it_fills_any_terminal_exactly(width: int, height: int, many: int) -> None:
    changes: dict[str, Any] = {}
    if many:
        base = sweep_document().model_dump(mode="json", by_alias=True)
        changes = {
            "conditions": [{**base["conditions"][0], "condition": f"c{n}"} for n in range(many)],
            "nodes": [{**base["nodes"][0], "node": f"n{n}"} for n in range(many)],
            "running": base["running"] * many,
        }
    lines = drawn(sweep_screen(moment(**changes), width, height), width)
    assert len(lines) == height
    assert all(cell_len(line) <= width for line in lines)
    if many and height >= 24:
        assert "conditions more" in "\n".join(lines)
        assert "nodes more" in "\n".join(lines)


def test_without_a_terminal_everything_is_said() -> None:
    base = sweep_document().model_dump(mode="json", by_alias=True)
    rows = [{**base["conditions"][0], "condition": f"c{n}"} for n in range(100)]
    text = "\n".join(drawn(sweep_screen(moment(conditions=rows), 120, None), 120))
    assert "c99 " in text
    assert "q leaves" not in text


@pytest.mark.parametrize(
    ("standing", "changes", "expected"),
    [
        ("silent", {}, "NOT RUNNING: driver 1 on box is not at work, nothing new for 20 s"),
        ("ended", {"state": "settled"}, "ended, settled (driver 1 on box"),
        ("ended", {"state": "budget", "reason": "spent"}, "ended, budget: spent (driver 1"),
        ("results", {}, "no driver has shown this sweep"),
        ("running", {"stopping": True}, "stopping: no new attempts"),
    ],
)
def test_how_it_stands_is_said_first(standing: str, changes: dict[str, Any], expected: str) -> None:
    made = moment(standing, 20.0, **changes)
    assert drawn(sweep_screen(made, 120, 24), 120)[1].startswith(expected)
    assert any(expected in line for line in sweep_lines(made))


def test_what_others_wrote_moves_no_cursor() -> None:
    bad = "\x1b[2J\x1b]0;title\x07[bold]\nsecond\u202eline"
    base = sweep_document().model_dump(mode="json", by_alias=True)
    failure = base["failures"][0]
    failure["examples"][0]["detail"] = bad
    lines = drawn(
        sweep_screen(moment(failures=[failure], notes=[bad], host=bad), 200, 24), 200, colour=True
    )
    assert len(lines) == 24
    text = "\n".join(lines)
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[bold]" in text


def test_lines_are_shared_by_weight() -> None:
    assert share([2, 2, 2], 100) == [2, 2, 2]
    assert share([10, 10, 10], 12) == [2, 2, 2]
    assert share([10, 10, 10], 7) == [2, 1, 0]
    assert share([10, 1], 2) == [0, 0]
    assert share([], 10) == []


def test_no_field_of_a_document_moves_a_cursor() -> None:
    bad = "\x1b[2J\r\u202e"
    base = sweep_document().model_dump(mode="json", by_alias=True)
    running, failure, node = base["running"][0], base["failures"][0], base["nodes"][0]
    running.update({"attempt": bad, "phase": bad, "node": bad, "task": bad})
    failure.update({"blame": bad, "cause": bad})
    failure["examples"][0].update({"attempt": bad, "task": bad})
    node.update({"node": bad, "draining": bad})
    made = moment(
        running=[running], failures=[failure], nodes=[node], time=bad, parked_endpoints=[bad]
    )
    assert not set("\x1b\r\u202e") & set("".join(drawn(sweep_screen(made, 300, None), 300)))
