"""The one change to a body, and the one chunk that is hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.gateway.stream_usage import LONGEST, UsageHider, with_usage


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model":"m"}', b'{"stream_options":{"include_usage":true},"model":"m"}'),
        (b" {  }", b' {"stream_options":{"include_usage":true}  }'),
        (
            b'{"a": "\\u00fc \xc3\xbc", "stream_options" : {"x":1 }}',
            b'{"a": "\\u00fc \xc3\xbc", "stream_options" : {"include_usage":true,"x":1 }}',
        ),
        (b'{"stream_options":{}}', b'{"stream_options":{"include_usage":true}}'),
        (b'{"stream_options": null}', b'{"stream_options": {"include_usage":true}}'),
        (
            b'{"stream_options":{"include_usage" : false},"z":[1, 2]}',
            b'{"stream_options":{"include_usage" : true},"z":[1, 2]}',
        ),
        (
            b'{"messages":[{"content":"\\"stream_options\\":{"}]}',
            b'{"stream_options":{"include_usage":true},'
            b'"messages":[{"content":"\\"stream_options\\":{"}]}',
        ),
    ],
)
def test_what_is_put_in(before: bytes, after: bytes) -> None:
    assert with_usage(before) == after
    assert json.loads(after)["stream_options"]["include_usage"] is True


@pytest.mark.parametrize(
    "body",
    [
        b'{"stream_options":{"include_usage":true}}',
        b'{"stream_options": 1}',
        b'{"stream_options": [true]}',
        b"[]",
        b"",
        b"{",
        b'{"a" 1}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_left_alone(body: bytes) -> None:
    assert with_usage(body) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=20), JSON, max_size=4),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
)
def test_nothing_else_changes(document: dict[str, Any], escapes: bool, indent: int | None) -> None:
    document.pop("stream_options", None)
    before = json.dumps(document, ensure_ascii=escapes, indent=indent).encode("utf-8", "replace")
    after = with_usage(before)
    assert after is not None
    assert {**json.loads(before), "stream_options": {"include_usage": True}} == json.loads(after)
    put = len(after) - len(before)
    assert after[0:1] + after[1 + put :] == before


TEXT = b'data: {"choices":[{"delta":{"content":"\\"usage\\""}}],"usage":null}\n\n'
FILTER = b'data: {"choices":[],"prompt_filter_results":[],"usage":null}\n\n'
LAST = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
BOTH = b'data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
def test_the_usage_chunk_is_hidden_and_nothing_else(size: int, ends: bytes) -> None:
    def spelt(*events: bytes) -> bytes:
        return b"".join(events).replace(b"\n", ends)

    stream = spelt(b": hello\n\n", FILTER, TEXT, BOTH, LAST, DONE)
    hider = UsageHider()
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    out = b"".join([*(hider.feed(piece) for piece in pieces), hider.flush()])
    assert out == spelt(b": hello\n\n", FILTER, TEXT, BOTH, DONE)


def test_an_event_passes_as_soon_as_it_is_whole() -> None:
    hider = UsageHider()
    assert hider.feed(TEXT + TEXT[:9]) == TEXT
    assert hider.feed(TEXT[9:]) == TEXT


def test_a_stream_that_breaks_off_passes_as_far_as_it_came() -> None:
    hider = UsageHider()
    assert hider.feed(TEXT[:20]) == b""
    assert hider.flush() == TEXT[:20]
    assert hider.feed(LAST[:-1]) == b""
    assert hider.flush() == b""
    odd = b'data: {"usage" broken\n\n'
    assert hider.feed(odd) == odd


@pytest.mark.parametrize("size", [1000, 65_536, 10**7])
def test_events_of_any_length_and_number_pass_at_the_cost_of_their_bytes(size: int) -> None:
    long = b"data: " + b"x" * (LONGEST + 5) + b"\n\n"
    hider = UsageHider()
    stream = b"data: 1\n\n" * 50_000 + long + LAST + DONE
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    out = b"".join([*(hider.feed(piece) for piece in pieces), hider.flush()])
    assert out == stream.replace(LAST, b"")


def test_an_event_that_is_too_long_for_usage_passes_before_its_end() -> None:
    hider = UsageHider()
    long = b"data: " + b"x" * LONGEST
    assert hider.feed(long) == long[:-3]
    assert hider.feed(b"\r\n\r") == b"xxx"
    assert hider.feed(b"\n" + LAST) == b"\r\n\r\n"
