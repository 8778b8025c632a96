"""Both dialects: what is sent, and what is read, for the same conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workers.agent.dialect_chat import ChatDialect
from workers.agent.dialect_messages import MessagesDialect, thinking
from workers.agent.llm import (
    AnswerError,
    Assistant,
    Entry,
    ModelSettings,
    Stop,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    User,
)
from workers.agent.tools import SHELL

SETTINGS = ModelSettings("m", "openai", "medium", 4096)
CHAT, MESSAGES = ChatDialect(), MessagesDialect()


def chat_answer(message: dict[str, Any], finish: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **more}


def chat_call(**changes: Any) -> dict[str, Any]:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "shell", "arguments": '{"command": "ls"}'},
    }
    return {**call, **changes}


def test_a_chat_request() -> None:
    call = CHAT.answer(
        chat_answer({"content": None, "tool_calls": [chat_call(note="kept")]}, "tool_calls")
    )
    history: list[Entry] = [User("hi"), call.message, ToolResults((ToolResult("c1", "out"),))]
    body = CHAT.body(SETTINGS, "sys", history, [SHELL])
    assert body == {
        "model": "m",
        "stream": False,
        "max_completion_tokens": 4096,
        "reasoning_effort": "medium",
        "tool_choice": "auto",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "shell",
                    "description": SHELL.description,
                    "parameters": SHELL.schema,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "sys"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [chat_call(note="kept")]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
    }
    assert CHAT.headers("t") == {"Authorization": "Bearer t"}


def test_openrouter_has_its_own_names() -> None:
    body = CHAT.body(ModelSettings("m", "openrouter", "high", 10), "s", [], [])
    assert body["max_tokens"] == 10
    assert body["reasoning"] == {"effort": "high"}
    assert "max_completion_tokens" not in body
    assert "tools" not in body


def test_a_messages_request() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "t1", "name": "shell", "input": {"command": "ls"}},
    ]
    answer = MESSAGES.answer({"content": blocks, "stop_reason": "tool_use"})
    results = ToolResults((ToolResult("t1", "out"), ToolResult("t2", "no", is_error=True)))
    body = MESSAGES.body(SETTINGS, "sys", [User("hi"), answer.message, results], [SHELL])
    mark: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    assert body["system"] == [{"type": "text", "text": "sys", **mark}]
    assert body["max_tokens"] == 4096
    assert body["tools"] == [
        {"name": "shell", "description": SHELL.description, "input_schema": SHELL.schema}
    ]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [blocks[0], {**blocks[2], **mark}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "out", "is_error": False},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": "no",
                    "is_error": True,
                    **mark,
                },
            ],
        },
    ]
    assert set(body) == {"model", "max_tokens", "system", "messages", "tools"}
    assert answer.message.replay["content"][-1] == blocks[2], "marks are not kept in the history"
    assert MESSAGES.headers("t") == {"x-api-key": "t", "anthropic-version": "2023-06-01"}


def test_an_empty_answer_can_be_sent_back_in_both() -> None:
    said = MESSAGES.answer({"content": [], "stop_reason": "end_turn"}).message
    sent = MESSAGES.body(SETTINGS, "s", [User("a"), said, User("b")], [])["messages"][1]
    assert sent["content"][0]["text"] == "(no answer)"
    said = CHAT.answer(chat_answer({"content": None}, "stop")).message
    assert CHAT.body(SETTINGS, "s", [said], [])["messages"][1] == {
        "role": "assistant",
        "content": "",
    }


@pytest.mark.parametrize(
    ("model", "effort", "limit", "expected"),
    [
        ("claude-sonnet-4-6", "medium", 4096,
         {"thinking": {"type": "adaptive", "display": "summarized"},
          "output_config": {"effort": "medium"}}),
        ("claude-opus-5", "low", 4096,
         {"thinking": {"type": "adaptive", "display": "summarized"},
          "output_config": {"effort": "low"}}),
        ("claude-haiku-4-5", "medium", 65536,
         {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
        ("claude-sonnet-4-20250514", "high", 65536,
         {"thinking": {"type": "enabled", "budget_tokens": 32768}}),
        ("claude-haiku-4-5", "medium", 4096,
         {"thinking": {"type": "enabled", "budget_tokens": 3072}}),
        ("claude-haiku-4-5", "low", 1500, {}),
        ("claude-3-5-sonnet-20241022", "high", 65536, {}),
        ("claude-sonnet-4-6", "", 4096, {}),
        ("claude-sonnet-4-6", "none", 4096, {}),
        ("other", "high", 65536, {}),
    ],
)  # fmt: skip
def test_thinking_by_the_model_s_version(
    model: str, effort: str, limit: int, expected: dict[str, Any]
) -> None:
    assert thinking(model, effort, limit) == expected


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", Stop.END),
        ("length", Stop.TRUNCATED),
        ("content_filter", Stop.REFUSAL),
        ("tool_calls", Stop.TOOLS),
        ("new_reason", Stop.OTHER),
        (None, Stop.OTHER),
    ],
)
def test_chat_stops(finish: Any, stop: Stop) -> None:
    assert CHAT.answer(chat_answer({"content": "x"}, finish)).stop is stop


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("max_tokens", Stop.TRUNCATED),
        ("model_context_window_exceeded", Stop.TRUNCATED),
        ("refusal", Stop.REFUSAL),
        ("tool_use", Stop.TOOLS),
        ("pause_turn", Stop.OTHER),
    ],
)
def test_messages_stops(reason: str, stop: Stop) -> None:
    assert MESSAGES.answer({"content": [], "stop_reason": reason}).stop is stop


def test_a_truncated_answer_keeps_its_text_and_no_call() -> None:
    cut = chat_call(function={"name": "shell", "arguments": '{"comm'})
    answer = CHAT.answer(chat_answer({"content": "half", "tool_calls": [cut]}, "length"))
    assert (answer.message.text, answer.message.calls) == ("half", ())
    blocks = [{"type": "text", "text": "half"}, {"type": "tool_use", "id": "t"}]
    answer = MESSAGES.answer({"content": blocks, "stop_reason": "max_tokens"})
    assert (answer.message.text, answer.message.calls) == ("half", ())


def test_usage() -> None:
    chat = chat_answer(
        {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        "stop",
        usage={
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    )
    answer = CHAT.answer(chat)
    assert answer.message.text == "ab"
    assert answer.usage == Usage(10, 4, 2)
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 5,
        "output_tokens": 2,
    }
    told = MESSAGES.answer({"content": [], "stop_reason": "end_turn", "usage": usage})
    assert told.usage == Usage(10, 4, 2)
    assert CHAT.answer(chat_answer({"content": "x"}, "stop")).usage == Usage()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"choices": []},
        {"choices": [{"message": None}]},
        {"error": {"message": "x"}},
        chat_answer({"content": "x"}, "error"),
        chat_answer({"tool_calls": 5}, "tool_calls"),
        chat_answer({"tool_calls": [{}]}, "tool_calls"),
        chat_answer({"tool_calls": [chat_call(id="")]}, "tool_calls"),
        chat_answer({"tool_calls": [chat_call(function={"name": "x", "arguments": "[]"})]}, "x"),
        chat_answer({"tool_calls": [chat_call(function={"name": "x", "arguments": "{"})]}, "x"),
    ],
)
def test_what_is_no_chat_answer(data: Any) -> None:
    with pytest.raises(AnswerError):
        CHAT.answer(data)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"content": "text"},
        {"content": ["x"]},
        {"content": [{"type": "tool_use", "id": "t", "name": "shell", "input": []}]},
        {"content": [{"type": "tool_use", "name": "shell", "input": {}}]},
    ],
)
def test_what_is_no_messages_answer(data: Any) -> None:
    with pytest.raises(AnswerError):
        MESSAGES.answer(data)


def test_calls_are_read_alike() -> None:
    expected = (ToolCall("c1", "shell", {"command": "ls"}),)
    assert CHAT.answer(chat_answer({"tool_calls": [chat_call()]}, "tool_calls")).message.calls == (
        expected
    )
    block = {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls"}}
    assert MESSAGES.answer({"content": [block]}).message.calls == expected


def test_requests_are_json() -> None:
    for dialect in (CHAT, MESSAGES):
        json.dumps(dialect.body(SETTINGS, "s", [User("u"), Assistant("a")], [SHELL]))
