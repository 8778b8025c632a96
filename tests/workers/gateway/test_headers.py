from __future__ import annotations

import pytest

from workers.contract.endpoint import Endpoint
from workers.gateway.headers import response_headers, retry_of, token_of, upstream_headers
from workers.gateway.secret import Secret

KEY = Secret("sk-key-123456")
OPENAI = Endpoint(provider="openai", api_key_env="K")
ANTHROPIC = Endpoint(provider="anthropic", api_key_env="K")


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([("Authorization", "Bearer abc")], "abc"),
        ([("authorization", "bearer  abc ")], "abc"),
        ([("X-Api-Key", "abc")], "abc"),
        ([("Authorization", "Bearer abc"), ("x-api-key", "def")], "abc"),
        ([("Authorization", "Basic abc"), ("x-api-key", "def")], "def"),
        ([("Authorization", "Bearer "), ("x-api-key", " ")], None),
        ([], None),
    ],
)
def test_tokens(headers: list[tuple[str, str]], token: str | None) -> None:
    assert token_of(headers) == token


@pytest.mark.parametrize(
    ("value", "retry"),
    [("0", 0), ("3", 3), ("-1", None), ("x", None), ("²", None), ("99999", None)],
)
def test_retries(value: str, retry: int | None) -> None:
    assert retry_of([("X-Stainless-Retry-Count", value)]) == retry
    assert retry_of([]) is None


SENT = [
    ("Host", "localhost:3601"),
    ("Authorization", "Bearer token"),
    ("x-api-key", "token"),
    ("Content-Length", "5"),
    ("Content-Type", "application/json"),
    ("Connection", "keep-alive, X-Hop"),
    ("X-Hop", "1"),
    ("TE", "trailers"),
    ("Accept-Encoding", "gzip"),
    ("Cookie", "a=b"),
    ("X-Kept", "1"),
    ("X-Bytes", "\udcff"),
]


def test_a_request_for_openai() -> None:
    assert upstream_headers(SENT, OPENAI, KEY, []) == [
        ("Content-Type", "application/json"),
        ("X-Kept", "1"),
        ("Accept-Encoding", "identity"),
        ("Authorization", "Bearer sk-key-123456"),
    ]


def test_a_request_for_anthropic() -> None:
    assert upstream_headers(SENT, ANTHROPIC, KEY, [])[2:] == [
        ("Accept-Encoding", "identity"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "sk-key-123456"),
    ]
    sent = [("Anthropic-Version", "2024-01-01"), ("anthropic-beta", "b")]
    assert upstream_headers(sent, ANTHROPIC, KEY, [])[:2] == sent


def test_a_request_without_a_key() -> None:
    assert upstream_headers([("x-api-key", "t")], Endpoint(provider="scripted"), None, []) == [
        ("Accept-Encoding", "identity")
    ]


def test_a_key_in_another_header_and_headers_of_the_endpoint() -> None:
    azure = Endpoint(provider="openai", api_key_env="K", key_header="api-key")
    sent = [("API-Key", "token"), ("x-team", "agent's"), ("X-Kept", "1")]
    assert upstream_headers(sent, azure, KEY, [("X-Team", "red")]) == [
        ("X-Kept", "1"),
        ("Accept-Encoding", "identity"),
        ("api-key", "sk-key-123456"),
        ("X-Team", "red"),
    ]
    behind = Endpoint(provider="anthropic", api_key_env="K", key_header="Authorization")
    assert ("Authorization", "Bearer sk-key-123456") in upstream_headers(SENT, behind, KEY, [])
    assert not any(name == "x-api-key" for name, _ in upstream_headers(SENT, behind, KEY, []))


def test_an_answer() -> None:
    headers = [
        ("Content-Type", "text/event-stream"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Keep-Alive", "timeout=5"),
        ("X-Echo", "your key is sk-key-123456"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
    ]
    assert response_headers(headers, [KEY]) == [
        ("Content-Type", "text/event-stream"),
        ("Content-Length", "5"),
        ("X-Echo", "your key is ***"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
    ]


@pytest.mark.parametrize("char", ["\x00", "\x0b", "\x1b", "\r", "\n", "\x7f", "\udcff"])
def test_a_header_that_cannot_be_written_again_is_left_out(char: str) -> None:
    assert response_headers([("X", f"a{char}b"), ("Y", "tab\tand ü")], []) == [("Y", "tab\tand ü")]


def test_an_answer_that_was_compressed() -> None:
    headers = [("Content-Encoding", "gzip"), ("Content-Length", "5"), ("X", "1")]
    assert response_headers(headers, []) == [("X", "1")]
