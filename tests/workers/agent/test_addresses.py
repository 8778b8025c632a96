from __future__ import annotations

import pytest

from workers.agent.addresses import dial_host, http_base


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("ws://localhost:3600", "http://localhost:3600"),
        ("wss://relay.example/", "https://relay.example"),
        ("http://x//", "http://x"),
    ],
)
def test_the_bridge_of_a_relay(url: str, base: str) -> None:
    assert http_base(url) == base


def test_localhost_is_dialled_where_the_listeners_are() -> None:
    assert dial_host("localhost") == "127.0.0.1"
    assert dial_host("relay.example") == "relay.example"
