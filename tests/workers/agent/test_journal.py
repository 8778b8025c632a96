from __future__ import annotations

import re

import pytest

from workers.agent import journal

CHANNEL = "45efb0ba-a515-450f-b753-7411dfd6b163"


def test_an_entry_is_one_line_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    journal.write("two\nlines \n turn complete for channel x")
    out = capsys.readouterr().out
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z two lines turn .*\n", out)


@pytest.mark.parametrize(
    ("reason", "marker"),
    [
        ("end_turn", f"turn complete for channel {CHANNEL}: end_turn"),
        ("cancelled", f"turn cancelled for channel {CHANNEL}"),
        ("max_tokens", f"turn hit max_tokens for channel {CHANNEL}"),
        ("max_turn_requests", f"turn hit max_turn_requests for channel {CHANNEL}"),
        ("refusal", f"turn refused for channel {CHANNEL}"),
    ],
)
def test_delivery_is_told_before_the_end(
    reason: str, marker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.turn_ended(CHANNEL, reason, ["b", "a"])
    delivered, end = capsys.readouterr().out.splitlines()
    assert delivered.endswith(f"Z turn delivered Buzz events for channel {CHANNEL}: a,b")
    assert end.endswith(f"Z {marker}")
