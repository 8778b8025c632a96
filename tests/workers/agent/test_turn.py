from __future__ import annotations

from collections.abc import Sequence

import pytest

from workers.agent.llm import (
    Answer,
    Assistant,
    Entry,
    Stop,
    Tool,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    User,
)
from workers.agent.model import ContextOverflow, ModelError
from workers.agent.session import SUMMARY_REQUEST, Session
from workers.agent.turn import TRUNCATED_NOTE, StopReason, Turn


def say(text: str, stop: Stop = Stop.END, tokens: int | None = None) -> Answer:
    return Answer(Assistant(text), stop, Usage(tokens))


def use(command: str, tokens: int | None = None) -> Answer:
    call = ToolCall(command, "shell", {"command": command})
    return Answer(Assistant("", (call,)), Stop.TOOLS, Usage(tokens))


class Script:
    """Answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[list[Entry]] = []

    def ask(self, system: str, history: Sequence[Entry], tools: Sequence[Tool]) -> Answer:
        self.asked.append(list(history))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Echo:
    """Runs nothing: the result of a call is its command."""

    tools: Sequence[Tool] = ()

    def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        return tuple(ToolResult(call.id, f"ran {call.arguments['command']}") for call in calls)


def turn(
    *answers: Answer | Exception,
    more: Sequence[Sequence[str]] = (),
    rounds: int = 0,
    handoff: int = 10**9,
) -> tuple[Turn, Script, Session]:
    script = Script(*answers)
    session = Session("sys", handoff)
    additions = iter([*more])
    return Turn(script, Echo(), session, lambda: next(additions, ()), rounds), script, session


def test_tools_run_until_the_model_has_nothing_more_to_do() -> None:
    work, script, session = turn(use("a"), use("b"), say("done"))
    assert work.run("task") is StopReason.END_TURN
    assert script.asked[-1] == [
        User("task"),
        use("a").message,
        ToolResults((ToolResult("a", "ran a"),)),
        use("b").message,
        ToolResults((ToolResult("b", "ran b"),)),
    ]
    assert session.history[-1] == Assistant("done")


def test_what_arrives_meanwhile_stands_before_the_next_call() -> None:
    work, script, _ = turn(use("a"), say("done"), more=[["early"], ["late 1", "late 2"]])
    work.run("task")
    assert script.asked[0] == [User("task"), User("early")]
    assert script.asked[1][-2:] == [User("late 1"), User("late 2")]


def test_the_session_remembers_the_turn_before() -> None:
    work, script, _ = turn(say("one"), say("two"))
    work.run("first")
    work.run("second")
    assert script.asked[1] == [User("first"), Assistant("one"), User("second")]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (say("x", Stop.OTHER), StopReason.END_TURN),
        (say("no", Stop.REFUSAL), StopReason.REFUSAL),
        (Answer(use("a").message, Stop.REFUSAL), StopReason.REFUSAL),
    ],
)
def test_stops(answer: Answer, reason: StopReason) -> None:
    work, _, session = turn(answer)
    assert work.run("task") is reason
    assert isinstance(session.history[-1], Assistant)
    assert session.history[-1].calls == ()


def test_the_round_limit_counts_model_calls() -> None:
    work, script, _ = turn(use("a"), use("b"), use("c"), rounds=2)
    assert work.run("task") is StopReason.MAX_TURN_REQUESTS
    assert len(script.asked) == 2


def test_a_truncated_answer_runs_nothing_and_is_put_right_three_times() -> None:
    cut = Answer(use("half").message, Stop.TRUNCATED)
    work, script, _ = turn(cut, say("done"))
    assert work.run("task") is StopReason.END_TURN
    assert script.asked[1][-1] == User(TRUNCATED_NOTE)
    assert not any(isinstance(entry, ToolResults) for entry in script.asked[1])
    work, script, _ = turn(*[cut] * 4)
    assert work.run("task") is StopReason.MAX_TOKENS
    assert len(script.asked) == 4


def test_a_failing_model_ends_the_turn_with_its_error() -> None:
    work, _, _ = turn(use("a"), ModelError("gone"))
    with pytest.raises(ModelError, match="gone"):
        work.run("task")
    work, _, _ = turn(say("", Stop.TOOLS))
    with pytest.raises(ModelError, match="named none"):
        work.run("task")


def test_a_full_history_is_handed_over_before_the_next_call() -> None:
    work, script, session = turn(
        use("a", tokens=95), say("what I know"), say("done", tokens=20), handoff=90
    )
    assert work.run("task") is StopReason.END_TURN
    assert script.asked[1][-1] == User(SUMMARY_REQUEST)
    assert isinstance(script.asked[1][-2], ToolResults)
    (kept,) = script.asked[2]
    assert isinstance(kept, User)
    assert "what I know" in kept.text
    assert kept.text.endswith("task")
    assert session.history == [kept, Assistant("done")]


def test_an_overflow_that_the_endpoint_reports_is_handed_over_too() -> None:
    work, script, _ = turn(ContextOverflow("long"), say("short"), say("done"))
    assert work.run("task") is StopReason.END_TURN
    assert len(script.asked) == 3
    again: list[Answer | Exception] = [ContextOverflow("long"), say("s")]
    work, script, _ = turn(*again * 3, ContextOverflow("long"))
    with pytest.raises(ContextOverflow):
        work.run("task")
