"""A move in the words of a dialect: one body, or the events of a stream. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workers.contract.endpoint import Dialect
from workers.model.play import Run, Say

PIECE = 24
"""Characters of one delta of a stream."""
CREATED = 1_700_000_000
"""Of every answer: an answer is the same whenever it is asked for."""


@dataclass(frozen=True)
class Spoken:
    """A move with what an answer says around it."""

    move: Run | Say
    tool: str
    model: str
    id: str
    """Hex digits from which all ids of the answer are made."""
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    """Of the output."""

    @property
    def arguments(self) -> str:
        """The tool call's arguments as JSON; empty for a text."""
        return json.dumps({"command": self.move.command}) if isinstance(self.move, Run) else ""

    @property
    def text(self) -> str:
        """The text; empty for a tool call."""
        return self.move.text if isinstance(self.move, Say) else ""

    @property
    def is_call(self) -> bool:
        """Whether the move calls the tool."""
        return isinstance(self.move, Run)


def body(dialect: Dialect, spoken: Spoken) -> dict[str, Any]:
    """The whole answer."""
    match dialect:
        case "chat":
            return _chat(spoken)
        case "messages":
            return _message(spoken)
        case "responses":
            return _response(spoken)


def events(dialect: Dialect, spoken: Spoken, *, with_usage: bool) -> Iterator[bytes]:
    """The answer as server-sent events; chat carries usage only ``with_usage``."""
    match dialect:
        case "chat":
            yield from (_event(one) for one in _chat_chunks(spoken, with_usage=with_usage))
            yield b"data: [DONE]\n\n"
        case "messages":
            yield from (_event(one, one["type"]) for one in _message_events(spoken))
        case "responses":
            yield from (_event(one, one["type"]) for one in _response_events(spoken))


def failure(dialect: Dialect, kind: str, message: str) -> dict[str, Any]:
    """An error in the dialect's shape."""
    error: dict[str, Any] = {"type": kind, "message": message}
    if dialect == "messages":
        return {"type": "error", "error": error}
    return {"error": {**error, "code": kind, "param": None}}


def _event(data: dict[str, Any], name: str | None = None) -> bytes:
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def _chat(spoken: Spoken) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": spoken.text or None}
    if spoken.is_call:
        message["tool_calls"] = [_chat_call(spoken, spoken.arguments)]
    choice = {"index": 0, "message": message, "finish_reason": _chat_finish(spoken)}
    return {
        **_chat_head(spoken, "chat.completion"),
        "choices": [choice],
        "usage": _chat_usage(spoken),
    }


def _chat_head(spoken: Spoken, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{spoken.id}",
        "object": kind,
        "created": CREATED,
        "model": spoken.model,
    }


def _chat_call(spoken: Spoken, arguments: str) -> dict[str, Any]:
    function = {"name": spoken.tool, "arguments": arguments}
    return {"id": f"call_{spoken.id}", "type": "function", "function": function}


def _chat_finish(spoken: Spoken) -> str:
    return "tool_calls" if spoken.is_call else "stop"


def _chat_usage(spoken: Spoken) -> dict[str, Any]:
    return {
        "prompt_tokens": spoken.input_tokens,
        "completion_tokens": spoken.output_tokens,
        "total_tokens": spoken.input_tokens + spoken.output_tokens,
        "prompt_tokens_details": {"cached_tokens": spoken.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": spoken.reasoning_tokens},
    }


def _chat_chunks(spoken: Spoken, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    head = _chat_head(spoken, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        # As OpenAI's: usage is null in all chunks but the last if it was asked for.
        usage: dict[str, Any] = {"usage": None} if with_usage else {}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**head, "choices": [choice], **usage}

    yield chunk({"role": "assistant", "content": ""})
    if spoken.is_call:
        yield chunk({"tool_calls": [{"index": 0, **_chat_call(spoken, "")}]})
        for piece in _pieces(spoken.arguments):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    for piece in _pieces(spoken.text):
        yield chunk({"content": piece})
    yield chunk({}, _chat_finish(spoken))
    if with_usage:
        yield {**head, "choices": [], "usage": _chat_usage(spoken)}


def _message(spoken: Spoken) -> dict[str, Any]:
    return {
        **_message_head(spoken),
        "content": [_message_block(spoken, spoken.text, spoken.arguments)],
        "stop_reason": _message_stop(spoken),
        "usage": {**_message_usage(spoken, spoken.output_tokens), **_message_thinking(spoken)},
    }


def _message_head(spoken: Spoken) -> dict[str, Any]:
    return {
        "id": f"msg_{spoken.id}",
        "type": "message",
        "role": "assistant",
        "model": spoken.model,
        "stop_sequence": None,
    }


def _message_block(spoken: Spoken, text: str, arguments: str) -> dict[str, Any]:
    if not spoken.is_call:
        return {"type": "text", "text": text}
    value = json.loads(arguments or "{}")
    return {"type": "tool_use", "id": f"toolu_{spoken.id}", "name": spoken.tool, "input": value}


def _message_stop(spoken: Spoken) -> str:
    return "tool_use" if spoken.is_call else "end_turn"


def _message_usage(spoken: Spoken, output_tokens: int) -> dict[str, int]:
    return {
        "input_tokens": spoken.input_tokens - spoken.cached_tokens,
        "cache_read_input_tokens": spoken.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": output_tokens,
    }


def _message_thinking(spoken: Spoken) -> dict[str, Any]:
    return {"output_tokens_details": {"thinking_tokens": spoken.reasoning_tokens}}


def _message_events(spoken: Spoken) -> Iterator[dict[str, Any]]:
    start = {**_message_head(spoken), "content": [], "stop_reason": None}
    start["usage"] = _message_usage(spoken, 1)
    yield {"type": "message_start", "message": start}
    block = _message_block(spoken, "", "")
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for piece in _pieces(spoken.text or spoken.arguments):
        delta = (
            {"type": "input_json_delta", "partial_json": piece}
            if spoken.is_call
            else {"type": "text_delta", "text": piece}
        )
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": _message_stop(spoken), "stop_sequence": None},
        "usage": {"output_tokens": spoken.output_tokens, **_message_thinking(spoken)},
    }
    yield {"type": "message_stop"}


def _response(spoken: Spoken) -> dict[str, Any]:
    return {
        "id": f"resp_{spoken.id}",
        "object": "response",
        "created_at": CREATED,
        "model": spoken.model,
        "status": "completed",
        "incomplete_details": None,
        "error": None,
        "output": [_response_item(spoken)],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": spoken.input_tokens,
            "input_tokens_details": {"cached_tokens": spoken.cached_tokens},
            "output_tokens": spoken.output_tokens,
            "output_tokens_details": {"reasoning_tokens": spoken.reasoning_tokens},
            "total_tokens": spoken.input_tokens + spoken.output_tokens,
        },
    }


def _response_item(spoken: Spoken) -> dict[str, Any]:
    if spoken.is_call:
        return {
            "type": "function_call",
            "id": f"fc_{spoken.id}",
            "call_id": f"call_{spoken.id}",
            "name": spoken.tool,
            "arguments": spoken.arguments,
            "status": "completed",
        }
    return {
        "type": "message",
        "id": f"msg_{spoken.id}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": spoken.text, "annotations": []}],
    }


def _response_events(spoken: Spoken) -> Iterator[dict[str, Any]]:
    whole = _response(spoken)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    item = whole["output"][0]
    kind = "function_call_arguments" if spoken.is_call else "output_text"
    name = "arguments" if spoken.is_call else "text"
    place: dict[str, Any] = {"item_id": item["id"], "output_index": 0}
    if not spoken.is_call:
        place["content_index"] = 0
    deltas = _pieces(spoken.arguments or spoken.text)
    empty: dict[str, Any] = {"arguments": ""} if spoken.is_call else {"content": []}
    opened: list[dict[str, Any]] = []
    closed: list[dict[str, Any]] = []
    if not spoken.is_call:
        part = item["content"][0]
        opened = [{"type": "response.content_part.added", **place, "part": {**part, "text": ""}}]
        closed = [{"type": "response.content_part.done", **place, "part": part}]
    listed: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, **empty, "status": "in_progress"},
        },
        *opened,
        *({"type": f"response.{kind}.delta", **place, "delta": piece} for piece in deltas),
        {"type": f"response.{kind}.done", **place, name: spoken.arguments or spoken.text},
        *closed,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    for number, event in enumerate(listed):
        yield {**event, "sequence_number": number}
