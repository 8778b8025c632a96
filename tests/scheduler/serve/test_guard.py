from __future__ import annotations

import pytest

from scheduler.serve.guard import admits, headers, is_loopback, is_own_name

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])
def test_addresses_of_this_machine_alone(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_addresses_that_others_reach(address: str) -> None:
    assert not is_loopback(address)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost:8420", True),
        ("127.0.0.1:8420", True),
        ("[::1]:8420", True),
        ("LOCALHOST", True),
        ("evil.example:8420", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[", False),
        ("[::1", False),
        ("a]b", False),
    ],
)
def test_a_name_from_elsewhere_is_not_served(host: str, own: bool) -> None:
    assert is_own_name(host) is own


@pytest.mark.parametrize(
    ("request_headers", "cookie", "may"),
    [
        ({"Authorization": f"Bearer {TOKEN}"}, None, True),
        ({"Authorization": f"bearer  {TOKEN} "}, None, True),
        ({}, TOKEN, True),
        ({}, None, False),
        ({}, TOKEN[:-1], False),
        ({"Authorization": "Bearer "}, None, False),
        ({"Authorization": f"Bearer {TOKEN}x"}, TOKEN, False),
        ({"Authorization": "Basic Zm9v"}, TOKEN, True),
        ({"Authorization": "Bearer naïve-☃"}, None, False),
    ],
)
def test_who_is_admitted(request_headers: dict[str, str], cookie: str | None, may: bool) -> None:
    assert admits(TOKEN, request_headers, cookie) is may
    assert admits(None, request_headers, cookie)


def test_no_answer_is_sniffed_or_kept() -> None:
    carried = headers("default-src 'none'")
    assert carried["X-Content-Type-Options"] == "nosniff"
    assert carried["Cache-Control"] == "no-store"
    assert carried["Content-Security-Policy"] == "default-src 'none'"
