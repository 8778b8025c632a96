"""Addresses as NIP-42 and tenants compare them (§1.2, §1.4)."""

from __future__ import annotations

import pytest

from workers.relay.authentication import normalise_host, normalise_relay_url


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("ws://localhost:3600", "ws://127.0.0.1:3600/", True),
        ("ws://[::1]:3600", "WS://LOCALHOST:3600", True),
        ("ws://localhost", "ws://localhost:80/", True),
        ("wss://h:443", "wss://h", True),
        ("ws://localhost:3600", "ws://localhost", False),
        ("ws://localhost:3600", "wss://localhost:3600", False),
        ("ws://localhost:3600/x", "ws://localhost:3600", False),
        ("ws://h", "ws://localhost", False),
    ],
)
def test_1_4_relay_urls_are_compared_in_normal_form(left: str, right: str, same: bool) -> None:
    assert (normalise_relay_url(left) == normalise_relay_url(right)) is same


@pytest.mark.parametrize("text", ["", "localhost", "ws://", "ws://h:99999", "ws://[::1"])
def test_1_4_what_is_no_url_has_no_normal_form(text: str) -> None:
    assert normalise_relay_url(text) is None


@pytest.mark.parametrize(
    ("host", "normal"),
    [
        (" LocalHost:3600 ", "localhost:3600"),
        ("h:80", "h"),
        ("h:443", "h"),
        ("h.", "h"),
        ("h.:80", "h"),
        ("h:8080", "h:8080"),
    ],
)
def test_1_2_hosts_are_compared_in_normal_form(host: str, normal: str) -> None:
    assert normalise_host(host) == normal
