from __future__ import annotations

from typing import Any

import pytest

from workers.contract.endpoint import Dialect
from workers.model.conversation import Conversation, ConversationError, read_conversation

SHELL = {"name": "buzz-dev-mcp__shell"}
CHAT = {
    "tools": [{"type": "function", "function": {"name": "todo"}}, {"function": SHELL}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "p1"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "function": {"name": "shell", "arguments": "{}"}},
                {"id": "2", "function": {"name": "shell", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "2", "content": "o2"},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "o1"}]},
        {"role": "user", "content": [{"type": "text", "text": "p"}, {"type": "text", "text": "2"}]},
    ],
}
MESSAGES = {
    "tools": [{"name": "todo"}, SHELL],
    "system": [{"type": "text", "text": "s"}],
    "messages": [
        {"role": "user", "content": "p1"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "hm"},
                {"type": "tool_use", "id": "1", "name": "shell", "input": {}},
                {"type": "tool_use", "id": "2", "name": "shell", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "2", "content": "o2"},
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [{"type": "text", "text": "o1"}],
                },
                {"type": "text", "text": "p2"},
            ],
        },
    ],
}
RESPONSES = {
    "tools": [{"type": "function", "name": "todo"}, SHELL],
    "instructions": "s",
    "input": [
        {"role": "user", "content": "p1"},
        {"type": "function_call", "call_id": "1", "name": "shell", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "2", "output": "o2"},
        {"type": "function_call_output", "call_id": "1", "output": "o1"},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "p2"}],
        },
    ],
}


@pytest.mark.parametrize(
    ("dialect", "request_"), [("chat", CHAT), ("messages", MESSAGES), ("responses", RESPONSES)]
)
def test_the_same_conversation_in_every_dialect(dialect: Dialect, request_: object) -> None:
    assert read_conversation(dialect, request_) == Conversation(
        ("p1", "p2"), ("o1", "o2"), "buzz-dev-mcp__shell", "p2"
    )


def test_a_call_without_a_result() -> None:
    messages: list[Any] = CHAT["messages"][:4]
    assert read_conversation("chat", {"messages": messages}) == Conversation(
        ("p1",), ("", "o2"), None, "o2"
    )


def test_a_response_to_one_text() -> None:
    found = read_conversation("responses", {"input": "hello"})
    assert found == Conversation(("hello",), (), None, "hello")


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        {},
        {"messages": {}, "input": 5},
        {"messages": ["x"], "input": ["x"]},
        {"messages": [{"role": "user", "content": 5}], "input": [], "tools": 5},
        {"messages": [{"role": "assistant", "tool_calls": ["x"], "content": ["x"]}], "input": 1},
    ],
)
def test_what_is_no_request(dialect: Dialect, request_: object) -> None:
    with pytest.raises(ConversationError):
        read_conversation(dialect, request_)
