from __future__ import annotations

import pytest

from scheduler.series.retention import is_log


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        ("logs/agent.log", True),
        ("logs/deep/er.log", True),
        ("evidence.json", False),
        ("relay-events.jsonl", False),
        ("reward.json", False),
        ("usage.jsonl", False),
        ("try.json", False),
        ("logs.json", False),
        ("inputs/logs/x", False),
        ("buzz/logs/x", False),
    ],
)
def test_logs_alone_may_go(name: str, goes: bool) -> None:
    assert is_log(f"sweeps/s-20260101T000000Z/tries/ab/abcd/1-1/{name}") is goes


def test_no_key_of_another_kind_is_a_log() -> None:
    assert not is_log("sweeps/s/attempts/ab/abcd/logs/x/y/z")
    assert not is_log("sweeps/s/report/logs/x/y/logs/z")
