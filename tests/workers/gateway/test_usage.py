from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.contract.endpoint import Dialect
from workers.gateway.ledger import CallResult
from workers.gateway.reading import Reading, Tokens
from workers.gateway.usage import UsageReader


def stream(*events: dict[str, Any] | str, end: str = "\n") -> bytes:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in events]
    return "".join(f"data: {text}{end}{end}" for text in texts).encode()


CHAT = stream(
    {"choices": [{"delta": {"content": "ü"}, "finish_reason": None}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 2}},
    "[DONE]",
)
MESSAGES = b"event: ping\n" + stream(
    {"type": "ping"},
    {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 1}},
    },
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 15},
    },
    {"type": "message_stop"},
)
RESPONSES = stream(
    {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "output": [],
            "usage": {
                "input_tokens": 30,
                "input_tokens_details": {"cached_tokens": 20},
                "output_tokens": 5,
            },
        },
    },
)

STREAMS: list[tuple[Dialect, bytes, Reading]] = [
    ("chat", CHAT, Reading(Tokens(8, None, 2), "stop", ended=True)),
    ("messages", MESSAGES, Reading(Tokens(10, 6, 15), "end_turn", ended=True)),
    ("responses", RESPONSES, Reading(Tokens(30, 20, 5), "completed", ended=True)),
]


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 700), max_size=8), st.booleans())
def test_streams_in_any_pieces(
    case: tuple[Dialect, bytes, Reading], cuts: list[int], crlf: bool
) -> None:
    dialect, data, expected = case
    if crlf:
        data = data.replace(b"\n", b"\r\n")
    reader = UsageReader(dialect, is_stream=True)
    places = [0, *sorted(cuts), len(data)]
    for start, end in itertools.pairwise(places):
        reader.feed(data[start:end])
    assert reader.close() == expected


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: str(case[0]))
def test_a_stream_without_its_end(case: tuple[Dialect, bytes, Reading]) -> None:
    dialect, data, _ = case
    reader = UsageReader(dialect, is_stream=True)
    reader.feed(data[:60])
    assert reader.close().fault is CallResult.PROVIDER_MALFORMED


def test_what_is_known_of_a_message_that_broke_off() -> None:
    reader = UsageReader("messages", is_stream=True)
    reader.feed(MESSAGES[: MESSAGES.index(b'data: {"type": "message_delta"')])
    assert reader.so_far() == Reading(Tokens(10, 6, None))


@pytest.mark.parametrize(
    ("dialect", "event", "fault"),
    [
        ("messages", {"type": "error", "error": {"type": "overloaded_error"}}, "provider_5xx"),
        ("chat", {"error": {"code": 429}, "choices": []}, "rate_limited"),
        ("responses", {"type": "error", "code": "server_error"}, "provider_5xx"),
        (
            "responses",
            {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}},
            "rate_limited",
        ),
        ("chat", "{not json", "provider_malformed"),
        ("chat", "[]", "provider_malformed"),
        ("chat", {"error": "overloaded"}, "provider_5xx"),
    ],
)
def test_faults_inside_a_stream(dialect: Dialect, event: dict[str, Any] | str, fault: str) -> None:
    reader = UsageReader(dialect, is_stream=True)
    reader.feed(stream(event))
    assert reader.close().fault == CallResult(fault)


def test_a_fault_stands_whatever_follows() -> None:
    reader = UsageReader("chat", is_stream=True)
    reader.feed(b'data: {"error": "overloaded"}\n\ndata: [DONE]\n\n')
    assert reader.close().fault is CallResult.PROVIDER_5XX


def test_an_end_alone_is_no_answer() -> None:
    reader = UsageReader("chat", is_stream=True)
    reader.feed(b": hello\n\ndata: [DONE]\n\n")
    assert reader.close().fault is CallResult.PROVIDER_MALFORMED
    reader = UsageReader("chat", is_stream=True)
    reader.feed(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n')
    assert reader.close().fault is None


def test_usage_that_is_sent_twice_counts_once_and_is_not_unsaid() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    for last in (usage, {}, {"prompt_tokens": -1, "completion_tokens": 2**70}, None):
        reader = UsageReader("chat", is_stream=True)
        reader.feed(stream({"choices": [{"finish_reason": "stop"}], "usage": usage}))
        reader.feed(stream({"choices": [], "usage": last}))
        found = reader.close()
        assert (found.fault, found.tokens) == (None, Tokens(input=9, output=3))


def test_a_stream_may_lack_its_last_line_break() -> None:
    reader = UsageReader("chat", is_stream=True)
    reader.feed(CHAT.rstrip(b"\n"))
    assert reader.close().ended


def test_other_fields_and_comments_are_passed_over() -> None:
    reader = UsageReader("chat", is_stream=True)
    reader.feed(b": OPENROUTER PROCESSING\n\nid: 1\nretry: 5\n\n" + CHAT)
    assert reader.close().fault is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(("dialect", "data", "reading"), STREAMS)
def test_ends_of_lines_and_a_byte_order_mark(
    dialect: Dialect, data: bytes, reading: Reading, size: int, end: str
) -> None:
    whole = b"\xef\xbb\xbf" + data.replace(b"\n", end.encode())
    reader = UsageReader(dialect, is_stream=True)
    for at in range(0, len(whole), size):
        reader.feed(whole[at : at + size])
    assert reader.close() == reading


@pytest.mark.parametrize(
    "more", [b"data: [DONE] \n\n", b"data: [DONE]\n\ndata: bye\n\n", b"data:\n\ndata: [DONE]\n\n"]
)
def test_what_no_client_reads_is_no_fault(more: bytes) -> None:
    reader = UsageReader("chat", is_stream=True)
    reader.feed(CHAT.removesuffix(b"data: [DONE]\n\n") + more)
    assert reader.close() == STREAMS[0][2]


def test_a_long_line_in_many_pieces_is_read_once() -> None:
    reader = UsageReader("chat", is_stream=True)
    text = "x" * 2_000_000
    data = stream({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})
    for start in range(0, len(data), 1000):
        reader.feed(data[start : start + 1000])
    assert reader.close().finish == "stop"


def test_bodies_in_pieces() -> None:
    reader = UsageReader("chat", is_stream=False)
    data = b'{"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}'
    reader.feed(data[:20])
    reader.feed(data[20:])
    assert reader.so_far() == Reading()
    assert reader.close() == Reading(Tokens(1, None, None), "stop", ended=True)
