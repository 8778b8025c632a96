from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from scheduler.cli.progress import (
    DRAINING,
    JsonProgress,
    LineProgress,
    LiveProgress,
    duration,
    line_of,
    pace,
    progress,
)
from scheduler.view import Standing
from tests.scheduler.cli.builders import view_of
from tests.scheduler.report.builders import record
from workers.contract.outcome import Cause


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines() -> tuple[LineProgress, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    return LineProgress(Console(file=stream, width=200), clock), stream, clock


def test_a_plain_line_comes_on_change_and_not_too_fast() -> None:
    shown, stream, clock = lines()
    for second, passed in enumerate([0, 0, 1, 2, 2, 3]):
        clock.now = float(second)
        shown.moved(view_of("s", waiting=9 - passed, passed=passed))
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == [
        "one: 0 passed",
        "one: 2 passed",
    ]


def test_the_last_moment_is_shown_however_soon_it_comes() -> None:
    shown, stream, _ = lines()
    shown.moved(view_of("s", running=1))
    shown.moved(view_of("s", passed=1))
    assert stream.getvalue().splitlines()[-1].startswith("one: 1 passed, 0 failed |")


def test_stopping_is_said_once() -> None:
    shown, stream, _ = lines()
    for _ in range(3):
        shown.moved(view_of("s", running=1, stopping=True))
    assert stream.getvalue().count(DRAINING) == 1


def test_an_invalid_try_is_told_with_blame_and_cause_and_a_failed_one_is_not() -> None:
    shown, stream, _ = lines()
    shown.ended(record(Cause.WRONG, "ab" * 16, 1))
    assert stream.getvalue() == ""
    shown.ended(record(Cause.RATE_LIMITED, "ab" * 16, 1, detail="429 [bold]from[/] upstream"))
    assert stream.getvalue() == (
        "! greet × solver #0 try 1-1: invalid, provider: rate_limited in seal: "
        "429 [bold]from[/] upstream (abababababab)\n"
    )


def test_what_a_container_said_cannot_act_on_the_terminal() -> None:
    shown, stream, _ = lines()
    hostile = "\x1b]0;owned\x07\x1b[2J\u202egone\ud800"
    shown.ended(record(Cause.VERIFIER_CRASH, "ab" * 16, 1, detail=hostile))
    shown.note(hostile)
    assert stream.getvalue().count(r"\x1b]0;owned\x07\x1b[2J\u202egone\ud800") == 2
    assert "\x1b" not in stream.getvalue()


def test_json_is_one_event_a_line() -> None:
    stream = io.StringIO()
    shown = JsonProgress(stream)
    shown.event("start", sweep="s")
    shown.moved(view_of("s", running=2))
    shown.ended(record(Cause.WRONG, "ab" * 16, 1))
    shown.note("a node was lost")
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["start", "progress", "try", "note"]
    assert events[1]["conditions"][0]["running"] == 2
    assert (events[2]["try"], events[2]["verdict"], events[2]["cause"]) == ("1-1", "fail", "wrong")
    assert events[2]["seconds"] == 1.5


def test_a_terminal_gets_a_live_table() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with progress(console, as_json=False) as shown:
        assert isinstance(shown, LiveProgress)
        shown.moved(view_of("the-sweep", passed=7, waiting=2, invalid=1, invalid_tries=4))
        shown.note("a node joined")
    text = stream.getvalue()
    assert "the-sweep" in text
    assert "(4 tries)" in text
    assert "8/10 settled in 1 min 01 s, 12.0/min, ETA 2 min 05 s, 1 node" in text
    assert "a node joined" in text


def test_no_terminal_gets_plain_lines() -> None:
    with progress(Console(file=io.StringIO()), as_json=False) as shown:
        assert isinstance(shown, LineProgress)


def test_a_finished_sweep_has_no_eta_and_an_unknown_one_is_said_to_be() -> None:
    assert "ETA" not in pace(view_of("s", passed=3))
    assert "ETA unknown yet" in pace(view_of("s", waiting=3, eta_s=None))
    assert line_of(view_of("s", passed=3, nodes=2)).endswith("12.0/min, 2 nodes")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3599, "59 min 59 s"), (7620, "2 h 07 min")],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_moment_for_machines_does_not_grow_with_the_number_of_cells() -> None:
    stream = io.StringIO()
    standing = Standing("one", "a-task", "workflow", "leased", "", "", "")
    JsonProgress(stream).moved(replace(view_of("s", running=2), standings={standing: 2}))
    told = json.loads(stream.getvalue())
    assert "standings" not in told
    assert told["conditions"][0]["running"] == 2
