from __future__ import annotations

from workers.agent.llm import Assistant, ToolCall, ToolResult, ToolResults, User
from workers.agent.session import Session, size_bytes


def test_before_any_usage_bytes_stand_for_tokens() -> None:
    session = Session("s" * 10, 90)
    full = []
    for entry in (User("x" * 40), Assistant("y" * 10), User("x" * 40)):
        session.add(entry)
        full.append(session.is_full)
    assert full == [False, False, True]


def test_after_it_the_endpoint_s_count_plus_new_bytes() -> None:
    session = Session("s" * 1000, 90)
    session.add(User("x" * 1000))
    session.measured(50)
    full = []
    for entry in (Assistant("y" * 30), User("x" * 20)):
        session.add(entry)
        session.measured(None)
        full.append(session.is_full)
    assert full == [False, True]


def test_a_lone_prompt_is_never_handed_over() -> None:
    session = Session("", 10)
    session.add(User("x" * 100))
    assert not session.is_full


def test_the_latest_prompt_survives_and_is_not_asked_to_be_summed_up() -> None:
    session = Session("", 10)
    session.add(User("first"))
    session.add(Assistant("one"))
    session.add(User("second"))
    assert session.summary_request()[:-1] == [User("first"), Assistant("one")]
    session.hand_over("all so far")
    (kept,) = session.history
    assert isinstance(kept, User)
    assert "all so far" in kept.text
    assert kept.text.endswith("second")


def test_sizes() -> None:
    assert size_bytes(User("\u00e9")) == 2
    assert size_bytes(ToolResults((ToolResult("a", "abc"), ToolResult("b", "d")))) == 4
    assert size_bytes(Assistant("abc", (ToolCall("c", "shell", {}),), {"text": "abc"})) > 5
