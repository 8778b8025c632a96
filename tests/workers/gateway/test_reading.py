from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.contract.endpoint import Dialect
from workers.gateway.ledger import CallResult
from workers.gateway.reading import Reading, Tokens, fault_of, read_body, read_event

DIALECTS: tuple[Dialect, ...] = ("chat", "responses", "messages")

CHAT: dict[str, Any] = {
    "choices": [{"finish_reason": "length"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}
MESSAGE: dict[str, Any] = {
    "content": [],
    "stop_reason": "tool_use",
    "usage": {
        "input_tokens": 5,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 100,
        "output_tokens": 9,
    },
}
RESPONSE: dict[str, Any] = {
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [],
    "error": None,
    "usage": {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 6,
    },
}


@pytest.mark.parametrize(
    ("dialect", "body", "tokens", "finish"),
    [
        ("chat", CHAT, Tokens(7, None, 3), "length"),
        ("messages", MESSAGE, Tokens(125, 20, 9, cache_write=100), "tool_use"),
        ("responses", RESPONSE, Tokens(50, 40, 6), "max_output_tokens"),
        ("chat", {"choices": []}, Tokens(), None),
        ("messages", {"content": []}, Tokens(), None),
        ("responses", {"output": [], "status": "completed"}, Tokens(), "completed"),
    ],
)
def test_bodies(dialect: Dialect, body: dict[str, Any], tokens: Tokens, finish: str) -> None:
    assert read_body(dialect, body) == Reading(tokens, finish, ended=True)


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 4}}, 4),
        ({"prompt_tokens_details": {"cached_tokens": 0}, "cache_read_input_tokens": 9}, 0),
        ({"cache_read_input_tokens": 9}, 9),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {"cached_tokens": True}}, None),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, None),
        ({"prompt_tokens_details": {"cached_tokens": 10**30}}, None),
        ({"prompt_tokens_details": {"cached_tokens": 1.5}}, None),
    ],
)
def test_cached_tokens_of_chat(details: dict[str, Any], cached: int | None) -> None:
    body = {**CHAT, "usage": {"prompt_tokens": 7, "completion_tokens": 3, **details}}
    assert read_body("chat", body).tokens.cached == cached


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("document", [None, [], "text", 5, {}, {"choices": {}, "content": "x"}])
def test_what_is_no_answer(dialect: Dialect, document: object) -> None:
    assert read_body(dialect, document).fault is CallResult.PROVIDER_MALFORMED


@pytest.mark.parametrize(
    ("error", "result"),
    [
        ({"type": "overloaded_error"}, CallResult.PROVIDER_5XX),
        ({"type": "rate_limit_error"}, CallResult.RATE_LIMITED),
        ({"code": 429}, CallResult.RATE_LIMITED),
        ({"code": "rate_limit_exceeded"}, CallResult.RATE_LIMITED),
        ({"code": 402, "message": "no credit"}, CallResult.PROVIDER_AUTH),
        ({"type": "authentication_error"}, CallResult.PROVIDER_AUTH),
        ({"type": "invalid_request_error"}, CallResult.CLIENT_ERROR),
        ({"code": 502}, CallResult.PROVIDER_5XX),
        ({}, CallResult.PROVIDER_5XX),
    ],
)
def test_errors_inside_a_success(error: dict[str, Any], result: CallResult) -> None:
    assert fault_of(error) is result
    for dialect in DIALECTS:
        assert read_body(dialect, {"error": error}).fault is result
        assert read_event(dialect, {"error": error}, Reading()).fault is result


@pytest.mark.parametrize(
    ("dialect", "usage"),
    [
        ("chat", {"prompt_tokens": 9, "completion_tokens": 3}),
        ("responses", {"input_tokens": 9, "output_tokens": 3}),
        ("messages", {"input_tokens": 9, "output_tokens": 3}),
    ],
)
def test_what_an_error_cost_is_known_if_it_says_so(dialect: Dialect, usage: dict[str, int]) -> None:
    document = {"error": {"code": 502}, "usage": usage}
    expected = Reading(Tokens(9, None, 3), fault=CallResult.PROVIDER_5XX)
    assert read_body(dialect, document) == expected
    assert read_event(dialect, document, Reading()) == expected


def test_a_finish_that_is_no_utf8() -> None:
    reading = read_body("chat", {"choices": [{"finish_reason": "\ud800" + "x" * 100}]})
    assert reading.finish == "?" + "x" * 100


def test_a_chat_choice_that_ended_in_an_error() -> None:
    reading = read_body("chat", {"choices": [{"finish_reason": "error"}]})
    assert (reading.finish, reading.fault) == ("error", CallResult.PROVIDER_5XX)


NAMES = """choices usage content output error type code message delta response finish_reason
input_tokens output_tokens prompt_tokens prompt_tokens_details stop_reason status"""
WORDS = st.sampled_from(NAMES.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


@given(st.sampled_from(DIALECTS), JSON, st.sampled_from(["message_start", "response.failed", "x"]))
def test_nothing_a_provider_says_is_an_exception(
    dialect: Dialect, document: object, kind: str
) -> None:
    read_body(dialect, document)
    read_event(dialect, document, Reading())
    if isinstance(document, dict):
        read_event(dialect, {**document, "type": kind}, Reading())


@pytest.mark.parametrize(
    ("dialect", "body", "tokens"),
    [
        (
            "chat",
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 50,
                    "completion_tokens": 20,
                    "completion_tokens_details": {"reasoning_tokens": 12},
                    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 6},
                },
            },
            Tokens(50, 4, 20, cache_write=6, reasoning=12),
        ),
        (
            "responses",
            {
                "output": [],
                "usage": {
                    "input_tokens": 50,
                    "output_tokens": 20,
                    "output_tokens_details": {"reasoning_tokens": 12},
                },
            },
            Tokens(50, None, 20, reasoning=12),
        ),
    ],
)
def test_reasoning_and_cache_writes(dialect: Dialect, body: dict[str, Any], tokens: Tokens) -> None:
    assert read_body(dialect, body).tokens == tokens


@pytest.mark.parametrize(
    ("made", "thought", "total", "output"),
    [
        (20, 12, 70, 20),
        (20, 12, None, 20),
        (20, 12, 82, 32),
        (1, 386, None, 387),
        (1, 386, 437, 387),
        (20, 0, 70, 20),
        (20, None, 82, 32),
        (20, None, 60, 20),
        (20, 12, 75, 20),
    ],
)
def test_reasoning_that_is_counted_beside_the_output_is_a_part_of_it(
    made: int, thought: int | None, total: int | None, output: int
) -> None:
    more = {} if total is None else {"total_tokens": total}
    details = {"reasoning_tokens": thought}
    chat = {
        "prompt_tokens": 50,
        "completion_tokens": made,
        "completion_tokens_details": details,
        **more,
    }
    responses = {
        "input_tokens": 50,
        "output_tokens": made,
        "output_tokens_details": details,
        **more,
    }
    expected = Tokens(50, None, output, reasoning=thought)
    assert read_body("chat", {"choices": [], "usage": chat}).tokens == expected
    assert read_body("responses", {"output": [], "usage": responses}).tokens == expected


def test_a_later_event_that_leaves_out_the_cache_does_not_lose_it() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 100}
    start = {"type": "message_start", "message": {"usage": usage}}
    reading = read_event("messages", start, Reading())
    delta = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 5, "output_tokens": 9}}
    reading = read_event("messages", delta, reading)
    assert reading.tokens == Tokens(125, 20, 9, cache_write=100)
