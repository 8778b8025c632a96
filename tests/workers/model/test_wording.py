"""Answers in every dialect, whole and streamed, say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workers.contract.endpoint import Dialect
from workers.gateway.reading import Tokens
from workers.gateway.usage import UsageReader
from workers.model.play import Run, Say
from workers.model.wording import Spoken, body, events, failure

DIALECTS: tuple[Dialect, ...] = ("chat", "messages", "responses")
COMMAND = "printf %s 'a long enough text, with \"quotes\" and ü' | cat"


def spoken(move: Run | Say) -> Spoken:
    return Spoken(move, "shell", "scripted-solver", "ab12", 300, 128, 40, 5)


SAID = spoken(Say("The answer was sent, and this text is longer than one piece."))
CALLED = spoken(Run(COMMAND))


def parsed(stream: bytes) -> list[dict[str, Any]]:
    lines = [line for line in stream.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("answer", [SAID, CALLED])
def test_usage_is_read_back(dialect: Dialect, answer: Spoken) -> None:
    whole = UsageReader(dialect, is_stream=False)
    whole.feed(json.dumps(body(dialect, answer)).encode())
    streamed = UsageReader(dialect, is_stream=True)
    for piece in events(dialect, answer, with_usage=True):
        streamed.feed(piece)
    assert whole.close() == streamed.close()
    written = 0 if dialect == "messages" else None
    assert whole.close().tokens == Tokens(300, 128, 40, cache_write=written, reasoning=5)
    assert whole.close().fault is None


def test_calls_of_chat() -> None:
    (choice,) = body("chat", CALLED)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("call_ab12", "shell")
    assert json.loads(call["function"]["arguments"]) == {"command": COMMAND}
    chunks = parsed(b"".join(events("chat", CALLED, with_usage=False)))
    deltas = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in chunks]
    arguments = "".join(delta[0]["function"]["arguments"] for delta in deltas if delta)
    assert json.loads(arguments) == {"command": COMMAND}
    assert all("usage" not in chunk for chunk in chunks)


def test_calls_of_messages() -> None:
    (block,) = body("messages", CALLED)["content"]
    assert block == {
        "type": "tool_use",
        "id": "toolu_ab12",
        "name": "shell",
        "input": {"command": COMMAND},
    }
    found = parsed(b"".join(events("messages", CALLED, with_usage=False)))
    deltas = [event["delta"]["partial_json"] for event in found if "block_delta" in event["type"]]
    assert json.loads("".join(deltas)) == {"command": COMMAND}
    assert [event["type"] for event in found if "block_delta" not in event["type"]] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_calls_of_responses() -> None:
    (item,) = body("responses", CALLED)["output"]
    assert (item["type"], item["call_id"]) == ("function_call", "call_ab12")
    assert json.loads(item["arguments"]) == {"command": COMMAND}
    found = parsed(b"".join(events("responses", CALLED, with_usage=False)))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    deltas = [event["delta"] for event in found if event["type"].endswith("arguments.delta")]
    assert "".join(deltas) == item["arguments"]
    assert found[-1]["response"] == body("responses", CALLED)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_texts_arrive_whole(dialect: Dialect) -> None:
    stream = parsed(b"".join(events(dialect, SAID, with_usage=False)))
    pieces = []
    for event in stream:
        match dialect:
            case "chat":
                pieces.append(event["choices"][0]["delta"].get("content") or "")
            case "messages":
                pieces.append(event.get("delta", {}).get("text") or "")
            case "responses":
                pieces.append(event.get("delta") or "")
    assert "".join(pieces) == SAID.text


def test_failures() -> None:
    assert failure("messages", "t", "m") == {
        "type": "error",
        "error": {"type": "t", "message": "m"},
    }
    assert failure("chat", "t", "m")["error"]["code"] == "t"
