"""Anthropic messages, non-streaming, as buzz-agent words them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from workers.agent.llm import (
    Answer,
    AnswerError,
    Assistant,
    Entry,
    ModelSettings,
    Stop,
    Tool,
    ToolCall,
    Usage,
    User,
)

_STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "tool_use": Stop.TOOLS,
    "max_tokens": Stop.TRUNCATED,
    "model_context_window_exceeded": Stop.TRUNCATED,
    "refusal": Stop.REFUSAL,
}
_BUDGETS = {"low": 1024, "medium": 8192, "high": 32768, "xhigh": 32768, "max": 32768}
_ADAPTIVE_EFFORTS = {"xhigh": "high"}
_MODEL_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_CACHE = {"type": "ephemeral"}


class MessagesDialect:
    """Words requests for ``/v1/messages`` and reads the answers."""

    path = "/v1/messages"

    def headers(self, token: str) -> dict[str, str]:
        """Anthropic's key and version headers."""
        return {"x-api-key": token, "anthropic-version": "2023-06-01"}

    def body(
        self,
        settings: ModelSettings,
        system: str,
        history: Sequence[Entry],
        tools: Sequence[Tool],
    ) -> dict[str, Any]:
        """The request's JSON, with cache marks on the system prompt and the last two messages."""
        messages = [_wire(entry) for entry in history]
        for message in messages[-2:]:
            message["content"] = _marked(message["content"])
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_output_tokens,
            "system": [{"type": "text", "text": system, "cache_control": _CACHE}],
            "messages": messages,
        }
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        body.update(thinking(settings.model, settings.effort, settings.max_output_tokens))
        return body

    def answer(self, data: Any) -> Answer:
        """Reads the content blocks.

        Raises:
            AnswerError: it is not an answer of this dialect.
        """
        blocks = data.get("content") if isinstance(data, dict) else None
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise AnswerError("no list of content blocks in a message")
        stop = _STOPS.get(str(data.get("stop_reason")), Stop.OTHER)
        if stop is Stop.TRUNCATED:
            blocks = [block for block in blocks if block.get("type") == "text"]
        text = "".join(str(block.get("text", "")) for block in _of_type(blocks, "text"))
        calls = tuple(_call(block) for block in _of_type(blocks, "tool_use"))
        replay = {"role": "assistant", "content": [b for b in blocks if _replayable(b)]}
        return Answer(Assistant(text, calls, replay), stop, _usage(data.get("usage")))


def thinking(model: str, effort: str, max_output_tokens: int) -> dict[str, Any]:
    """The fields that ask for thinking, by the model's version; nothing for unknown models.

    A budget must leave room for the answer, so a small output limit asks for none.
    """
    found = _MODEL_VERSION.search(model)
    if not effort or effort in ("none", "minimal") or found is None:
        return {}
    version = (int(found.group(1)), int(found.group(2) or 0))
    if version >= (4, 6):
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": _ADAPTIVE_EFFORTS.get(effort, effort)},
        }
    budget = min(_BUDGETS.get(effort, 0), max_output_tokens - 1024)
    if version < (3, 7) or budget < 1024:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _wire(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, User):
        return {"role": "user", "content": [{"type": "text", "text": entry.text}]}
    if isinstance(entry, Assistant):
        if entry.replay and entry.replay["content"]:
            return dict(entry.replay)
        text = entry.text or "(no answer)"
        return {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": result.id,
                "content": result.text,
                "is_error": result.is_error,
            }
            for result in entry.results
        ],
    }


def _marked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks with a cache mark on the last; thinking blocks cannot carry one."""
    if not blocks or blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        return blocks
    return [*blocks[:-1], {**blocks[-1], "cache_control": _CACHE}]


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _of_type(blocks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [block for block in blocks if block.get("type") == kind]


def _replayable(block: dict[str, Any]) -> bool:
    """Empty text is refused by the endpoint when it comes back."""
    return block.get("type") != "text" or bool(block.get("text"))


def _call(block: dict[str, Any]) -> ToolCall:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not call_id or not name or not isinstance(arguments, dict):
        raise AnswerError("a tool_use block without id, name or an input that is an object")
    return ToolCall(str(call_id), str(name), arguments)


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()

    def count(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) else 0

    cached = count("cache_read_input_tokens")
    whole = count("input_tokens") + cached + count("cache_creation_input_tokens")
    return Usage(whole, cached, count("output_tokens"))
