from __future__ import annotations

from typing import Any

import pytest

from tests.workers.agent.worlds import chat_say, open_model
from workers.agent.http_post import Response
from workers.agent.llm import ModelSettings, User
from workers.agent.model import DIALECTS, ContextOverflow, Model, ModelError


def ask(
    *answers: tuple[int, Any], provider: str = "openai", url: str = ""
) -> tuple[Any, list[float], list[Any]]:
    """Asks once; gives the answer or the error, the waits, and the requests."""
    rest = list(answers)
    waits: list[float] = []
    with open_model(lambda _path, _body: rest.pop(0)) as server:
        model = Model(
            ModelSettings("luna", provider, "", 100),
            DIALECTS["chat"],
            url or server.url,
            "token-secret",
            sleep=waits.append,
            jitter=lambda: 0.0,
        )
        result: Any
        try:
            result = model.ask("sys", [User("hi")], [])
        except ModelError as error:
            result = error
        assert "token-secret" not in repr(model)
        return result, waits, server.requests


def test_an_answer_at_once() -> None:
    answer, waits, requests = ask((200, chat_say("hello")))
    assert answer.message.text == "hello"
    assert waits == []
    path, headers, body = requests[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer token-secret"
    assert headers["x-stainless-retry-count"] == "0"
    assert body["model"] == "luna"


@pytest.mark.parametrize("status", [429, 499, 500, 503, 529])
def test_a_passing_failure_is_tried_three_times(status: int) -> None:
    answer, waits, requests = ask((status, {}), (status, {}), (200, chat_say("late")))
    assert answer.message.text == "late"
    assert waits == [0.25, 0.5]
    assert [headers["x-stainless-retry-count"] for _, headers, _ in requests] == ["0", "1", "2"]


def test_three_failures_are_an_error_that_says_so() -> None:
    error, waits, requests = ask(*[(503, b"overloaded")] * 3)
    assert isinstance(error, ModelError)
    assert "luna" in str(error)
    assert "status 503: overloaded" in str(error)
    assert "3 attempts" in str(error)
    assert (len(waits), len(requests)) == (2, 3)


@pytest.mark.parametrize("answer", [b"not json", b"[" * 100_000, b"{}", b'{"choices": []}'])
def test_a_malformed_answer_counts_as_passing(answer: bytes) -> None:
    told, _, requests = ask((200, answer), (200, chat_say("ok")))
    assert told.message.text == "ok"
    assert len(requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    error, waits, requests = ask((status, {"error": {"message": "no"}}))
    assert isinstance(error, ModelError)
    assert f"status {status}" in str(error)
    assert (waits, len(requests)) == ([], 1)


def test_an_overlong_conversation_is_told_apart() -> None:
    told = {"error": {"code": "context_length_exceeded"}}
    assert isinstance(ask((400, told))[0], ContextOverflow)
    assert not isinstance(ask((400, {"error": "bad"}))[0], ContextOverflow)


def test_nobody_there_is_tried_three_times() -> None:
    error, waits, _ = ask(url="http://127.0.0.1:1")
    assert "no connection" in str(error)
    assert len(waits) == 2


def test_retry_after_is_heeded_for_openrouter_alone() -> None:
    waits: list[float] = []
    for provider in ("openrouter", "openai"):
        model = Model(ModelSettings("m", provider, "", 1), DIALECTS["chat"], "", "")
        waits += [
            model._retry_after(Response(429, {"retry-after": text}, b""))
            for text in ("7", "900", "soon")
        ]
    assert waits == [7.0, 60.0, 0.0, 0.0, 0.0, 0.0]


def test_a_lone_surrogate_from_a_model_can_be_sent_back() -> None:
    with open_model(lambda _path, _body: (200, chat_say("ok"))) as server:
        model = Model(ModelSettings("m", "openai", "", 1), DIALECTS["chat"], server.url, "t")
        assert model.ask("s", [User("\ud800")], []).message.text == "ok"
