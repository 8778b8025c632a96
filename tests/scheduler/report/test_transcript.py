from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.report.transcript import MAX_DEPTH, transcript, visible
from tests.scheduler.report.evidence import AGENT, ANSWER, BOT, TASK, USER, conversation, message


def test_a_reply_stands_under_what_it_answers() -> None:
    question, answer = transcript(conversation())
    assert (question.depth, question.marks, question.mentions) == (0, ("task",), ("solo-1",))
    assert (answer.depth, answer.marks, answer.mentions) == (1, ("completion",), ("Ada Lovelace",))
    assert (answer.author, answer.role, answer.time) == ("solo-1", "orchestrator", "00:00:05")


def test_indentation_ends_somewhere() -> None:
    chain = [message(TASK, USER, "0", at=1)]
    for number in range(1, 12):
        chain.append(
            message(f"{number:064d}", AGENT, str(number), at=number, reply_to=chain[-1].id)
        )
    assert [line.depth for line in transcript(conversation(*chain))][-1] == MAX_DEPTH


def test_a_reply_to_itself_or_to_nothing_does_not_hang() -> None:
    loop = message(TASK, AGENT, "me", at=1, reply_to=TASK)
    lost = message(ANSWER, AGENT, "lost", at=2, reply_to="9" * 64)
    lines = transcript(conversation(loop, lost, task_event_id=None, completion_message_id=None))
    assert [line.depth for line in lines] == [0, 0]
    assert lines[1].marks == ("reply to a message that is not here",)


def test_names_come_from_the_directory_and_the_unknown_are_called_by_their_key() -> None:
    lines = transcript(
        conversation(message(TASK, BOT, "hi", at=1, mentions=("d" * 64,), kind=40002))
    )
    assert (lines[0].author, lines[0].mentions) == ("Bot", ("dddddddd",))
    assert lines[0].marks == ("task", "kind 40002")


def test_scripted_messages_bear_their_label() -> None:
    event = {"label": "beta", "event_id": TASK, "actor": "user", "reply_to_event_id": None}
    line = transcript(conversation(task_event_id=None, scripted_events=(event,)))[0]
    assert line.marks == ("scripted beta",)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext é 🐝", "plain\n\ttext é 🐝"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("abc\u202edef", "abc\\u202edef"),
        ("a\rb\x00", "a\\rb\\x00"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nothing_that_a_terminal_would_act_upon_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_what_is_visible_has_no_control_characters(text: str) -> None:
    left = {unicodedata.category(sign) for sign in visible(text) if sign not in "\n\t"}
    assert not left & {"Cc", "Cf", "Cs"}


@pytest.mark.parametrize("created_at", [-(10**18), -1, 0, 10**12, 2**63])
def test_a_time_that_no_calendar_knows_breaks_no_page(created_at: int) -> None:
    (line,) = transcript(conversation(message(TASK, USER, "hello", at=created_at)))
    assert len(line.time) == 8
