from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workers.gateway import CallResult, GatewayError, LedgerLine, usage_of
from workers.gateway.ledger import Ledger


def line(request: int = 1, **more: Any) -> LedgerLine:
    fields: dict[str, Any] = {
        "request": request,
        "agent": "solo-1",
        "endpoint": "m",
        "dialect": "chat",
        "model": "m",
        "started_s": 0.5,
        "seconds": 1.5,
        "status": 200,
        "result": CallResult.OK,
        "input_tokens": 100,
        "cached_input_tokens": 40,
        "output_tokens": 10,
        "cost_usd": 0.25,
        "streamed": False,
        "retry": None,
        "finish": "stop",
    }
    return LedgerLine(**{**fields, **more})


UNKNOWN: dict[str, Any] = {
    "input_tokens": None,
    "cached_input_tokens": None,
    "output_tokens": None,
    "cost_usd": None,
}
ZERO: dict[str, Any] = dict.fromkeys(UNKNOWN, 0)


def test_sums() -> None:
    lines = [
        line(1),
        line(2, result=CallResult.PROVIDER_UNREACHABLE, status=None, **UNKNOWN),
        line(3, result=CallResult.RATE_LIMITED, status=429, **{**ZERO, "cost_usd": 0.0}),
        line(4, result=CallResult.REFUSED_BUDGET, status=402, **{**ZERO, "cost_usd": 0.0}),
        line(5, result=CallResult.CUT, **{**UNKNOWN, "input_tokens": 7}),
        line(6, cached_input_tokens=None),
    ]
    usage = usage_of(lines)
    assert (usage.calls, usage.failed_calls, usage.unknown_cost_calls) == (5, 3, 2)
    assert (usage.input_tokens, usage.cached_input_tokens) == (207, 40)
    assert (usage.output_tokens, usage.cost_usd) == (20, 0.5)


def test_lines_are_written_as_they_come_and_given_by_arrival(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    heard: list[LedgerLine] = []
    ledger = Ledger(path, heard.append)
    ledger.add(line(2))
    assert heard == [line(2)]
    assert LedgerLine.from_json(path.read_text(), "l") == line(2)
    ledger.add(line(1))
    ledger.close()
    ledger.close()
    assert [one.request for one in ledger.lines()] == [1, 2]
    assert [json.loads(text)["request"] for text in path.read_text().splitlines()] == [2, 1]


def test_a_ledger_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    path.write_text("kept")
    with pytest.raises(GatewayError, match="File exists"):
        Ledger(path)
    assert path.read_text() == "kept"


def test_a_line_that_was_not_written_is_told_at_the_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.jsonl")
    ledger._file.close()
    ledger._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the ledger closes it.
    ledger.add(line())
    assert ledger.lines() == (line(),)
    with pytest.raises(GatewayError, match="No space left"):
        ledger.close()


def test_the_format_is_closed() -> None:
    data = json.loads(line().to_json())
    assert data["result"] == "ok"
    assert set(data) == set(LedgerLine.model_fields)
