"""What a request says, apart from its dialect: prompts, tool results, the shell's name. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workers.contract.endpoint import Dialect


class ConversationError(ValueError):
    """The request is not one of its dialect."""


@dataclass(frozen=True)
class Prompt:
    """Something that the model was told."""

    text: str


@dataclass(frozen=True)
class Called:
    """A tool call that the model made before."""

    id: str


@dataclass(frozen=True)
class Returned:
    """What a tool call gave."""

    id: str
    text: str


Entry = Prompt | Called | Returned


@dataclass(frozen=True)
class Conversation:
    """A request: everything that was said so far, and what may be called."""

    prompts: tuple[str, ...]
    outputs: tuple[str, ...]
    """Of the calls made so far, in the order of the calls; empty where one has no result."""
    shell: str | None
    """The name of the offered tool that runs commands."""
    last: str
    """The text of the newest entry, which no provider can have cached."""


def read_conversation(dialect: Dialect, request: object) -> Conversation:
    """Reads a request's body.

    Raises:
        ConversationError: it has not the form of its dialect.
    """
    if not isinstance(request, Mapping):
        raise ConversationError("the body is not a JSON object")
    try:
        entries = list(_READERS[dialect](request))
        tools = list(_tool_names(request))
    except (AttributeError, TypeError) as error:
        raise ConversationError(f"a field has an unexpected type: {error}") from error
    results = {one.id: one.text for one in entries if isinstance(one, Returned)}
    texts = [one.text for one in entries if not isinstance(one, Called)]
    return Conversation(
        prompts=tuple(one.text for one in entries if isinstance(one, Prompt)),
        outputs=tuple(results.get(one.id, "") for one in entries if isinstance(one, Called)),
        shell=next((name for name in tools if "shell" in name), None),
        last=texts[-1] if texts else "",
    )


def _chat(request: Mapping[str, Any]) -> Iterator[Entry]:
    """OpenAI chat completions."""
    for message in _list(request, "messages"):
        match message.get("role"):
            case "user":
                yield Prompt(_text(message.get("content")))
            case "assistant":
                for call in message.get("tool_calls") or ():
                    yield Called(str(call.get("id")))
            case "tool":
                yield Returned(str(message.get("tool_call_id")), _text(message.get("content")))
            case _:
                pass


def _messages(request: Mapping[str, Any]) -> Iterator[Entry]:
    """Anthropic messages: tool results are blocks of the user's."""
    for message in _list(request, "messages"):
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content or ():
            match message.get("role"), block.get("type"):
                case "user", "text":
                    yield Prompt(str(block.get("text")))
                case "user", "tool_result":
                    yield Returned(str(block.get("tool_use_id")), _text(block.get("content")))
                case "assistant", "tool_use":
                    yield Called(str(block.get("id")))
                case _:
                    pass


def _responses(request: Mapping[str, Any]) -> Iterator[Entry]:
    """OpenAI responses: a flat list of items, or one text."""
    if isinstance(request.get("input"), str):
        yield Prompt(str(request["input"]))
        return
    for item in _list(request, "input"):
        match item.get("type", "message"), item.get("role"):
            case "message", "user":
                yield Prompt(_text(item.get("content")))
            case "function_call", _:
                yield Called(str(item.get("call_id")))
            case "function_call_output", _:
                yield Returned(str(item.get("call_id")), _text(item.get("output")))
            case _:
                pass


_READERS = {"chat": _chat, "messages": _messages, "responses": _responses}


def _tool_names(request: Mapping[str, Any]) -> Iterator[str]:
    for tool in request.get("tools") or ():
        if isinstance(tool, Mapping):
            function = tool.get("function")
            yield str((function if isinstance(function, Mapping) else tool).get("name"))


def _list(request: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = request.get(name)
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise ConversationError(f"{name} is no list of objects")
    return value


def _text(content: object) -> str:
    """The text of a content field: a string, or a list of typed blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(one.get("text", "")) for one in content if isinstance(one, Mapping))
    return "" if content is None else json.dumps(content)
