"""OpenAI chat completions, non-streaming, as buzz-agent words them."""

from __future__ import annotations

import json
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
    "stop": Stop.END,
    "end_turn": Stop.END,
    "tool_calls": Stop.TOOLS,
    "tool_use": Stop.TOOLS,
    "length": Stop.TRUNCATED,
    "max_tokens": Stop.TRUNCATED,
    "content_filter": Stop.REFUSAL,
    "refusal": Stop.REFUSAL,
}


class ChatDialect:
    """Words requests for ``/v1/chat/completions`` and reads the answers."""

    path = "/v1/chat/completions"

    def headers(self, token: str) -> dict[str, str]:
        """Bearer authentication."""
        return {"Authorization": f"Bearer {token}"}

    def body(
        self,
        settings: ModelSettings,
        system: str,
        history: Sequence[Entry],
        tools: Sequence[Tool],
    ) -> dict[str, Any]:
        """The request's JSON; OpenRouter has its own names for two of the fields."""
        openrouter = settings.provider == "openrouter"
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        for entry in history:
            messages.extend(_wire(entry))
        limit = "max_tokens" if openrouter else "max_completion_tokens"
        body: dict[str, Any] = {
            "model": settings.model,
            "stream": False,
            limit: settings.max_output_tokens,
            "messages": messages,
        }
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
            body["tool_choice"] = "auto"
        if settings.effort and openrouter:
            body["reasoning"] = {"effort": settings.effort}
        elif settings.effort:
            body["reasoning_effort"] = settings.effort
        return body

    def answer(self, data: Any) -> Answer:
        """Reads the first choice.

        Raises:
            AnswerError: there is none, or it is not of this dialect.
        """
        try:
            choice = data["choices"][0]
            message = choice["message"]
            finish = choice.get("finish_reason")
            raw_calls = message.get("tool_calls") or []
            text = _text(message.get("content"))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise AnswerError("no choices[0].message in a chat completion") from error
        if finish == "error":
            raise AnswerError("the endpoint answered with finish_reason 'error'")
        if not isinstance(raw_calls, list):
            raise AnswerError("tool_calls is no list")
        calls = () if finish == "length" else tuple(_call(raw) for raw in raw_calls)
        replay: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            replay["tool_calls"] = raw_calls
        elif not text:
            replay["content"] = ""
        stop = _STOPS.get(str(finish), Stop.OTHER)
        return Answer(Assistant(text, calls, replay), stop, _usage(data.get("usage")))


def _wire(entry: Entry) -> list[dict[str, Any]]:
    if isinstance(entry, User):
        return [{"role": "user", "content": entry.text}]
    if isinstance(entry, Assistant):
        return [entry.replay or {"role": "assistant", "content": entry.text}]
    return [
        {"role": "tool", "tool_call_id": result.id, "content": result.text}
        for result in entry.results
    ]


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _text(content: Any) -> str:
    """The text of a content field: a string, or a list of typed blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return ""


def _call(raw: Any) -> ToolCall:
    try:
        call_id, name = raw["id"], raw["function"]["name"]
        text = raw["function"].get("arguments") or "{}"
        arguments = json.loads(text) if isinstance(text, str) else text
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AnswerError("a tool call without id, name or JSON arguments") from error
    if not call_id or not name or not isinstance(arguments, dict):
        raise AnswerError("a tool call without id, name or arguments that are an object")
    return ToolCall(str(call_id), str(name), arguments)


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = usage.get("cache_read_input_tokens")
    if cached is None and isinstance(details, dict):
        cached = details.get("cached_tokens")
    return Usage(
        _count(usage.get("prompt_tokens")), _count(cached), _count(usage.get("completion_tokens"))
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
