"""The address of a deployment's relay, and what is kept of its words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workers.contract.base import FormatError
from workers.contract.relay import Deployment, RelaySeen


def deployment(**fields: Any) -> Deployment:
    given = {"url": "wss://relay.example.org", "owner_key_env": "OWNER", **fields}
    return Deployment.from_json(json.dumps(given), "relay")


@pytest.mark.parametrize(
    ("url", "place", "community"),
    [
        ("ws://localhost:3600", ("localhost", 3600), "localhost:3600"),
        ("ws://127.0.0.1:3600", ("127.0.0.1", 3600), "127.0.0.1:3600"),
        ("ws://relay.example.org", ("relay.example.org", 80), "relay.example.org"),
        ("wss://relay.example.org/", ("relay.example.org", 443), "relay.example.org"),
        ("ws://relay.example.org:80", ("relay.example.org", 80), "relay.example.org"),
        ("ws://buzz_relay:3600", ("buzz_relay", 3600), "buzz_relay:3600"),
        ("wss://Relay.Example.org:8443", ("relay.example.org", 8443), "relay.example.org:8443"),
    ],
)
def test_an_address(url: str, place: tuple[str, int], community: str) -> None:
    made = deployment(url=url)
    assert (tuple(made.place), made.community, made.dialled) == (place, community, None)
    assert made.archive_on_teardown


def test_a_gateway() -> None:
    assert deployment(gateway="[::1]:3600").dialled == ("::1", 3600)
    assert deployment(gateway="10.0.0.7:3600").dialled == ("10.0.0.7", 3600)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "https://relay.example.org"}, "url must be ws://host"),
        ({"url": "relay.example.org"}, "url must be ws://host"),
        ({"url": "ws://"}, "url must be ws://host"),
        ({"url": "ws://host:99999"}, "url must be ws://host"),
        ({"url": "ws://user@host"}, "no more than a scheme, a host and a port"),
        ({"url": "wss://host/path"}, "no more than a scheme, a host and a port"),
        ({"url": "ws://10.0.0.7:3600"}, "url must name a host"),
        ({"url": "ws://[::1]:3600"}, "url must name a host"),
        *(
            ({"url": url}, "url must be ws://host")
            for url in (
                "WS://host",
                " ws://host",
                "ws://ho\tst",
                "ws://host:",
                "ws://host:0",
                "ws://host:0080",
                "ws://host?",
                "ws://host/?",
                "ws://host#",
                "ws://host//",
            )
        ),
        *(
            ({"url": f"ws://{host}:3600"}, "url must have the name of a host")
            for host in ("host.", "a b", "b\u00fccher.example", "ho%73t", "a..b", "-a", "a" * 300)
        ),
        *(
            ({"url": f"ws://{host}:3600"}, "url must have the name of a host")
            for host in ("127.1", "2130706433", "0x7f.1", "127.0.0.0x1")
        ),
        ({"url": "ws://host:443"}, "port 443 with ws://"),
        ({"url": "wss://host:80"}, "port 80 with wss://"),
        ({"url": "ws://localhost:3601"}, "the gateway has it"),
        ({"url": "ws://127.0.0.1:3600", "gateway": "h:1"}, "gateway needs a url with the name"),
        ({"gateway": "host"}, "gateway must be host:port"),
        ({"gateway": "user@host:1"}, "gateway must be host:port"),
        ({"gateway": " host:1"}, "gateway must be host:port"),
        ({"gateway": "ws://host:1"}, "gateway must be host:port"),
        ({"owner_key_env": "nsec1 not a name"}, "owner_key_env"),
        ({"owner_secret_key": "x"}, "owner_secret_key"),
    ],
)
def test_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        deployment(**fields)


def test_only_words_are_kept_of_what_a_relay_says_and_not_too_many() -> None:
    said = {"name": "x" * 999, "version": 3, "self": "a" * 64, "supported_nips": [1]}
    seen = RelaySeen.of(deployment(), said)
    assert seen == RelaySeen(
        community="relay.example.org", name="x" * 200, version=None, pubkey="a" * 64
    )


def test_what_a_relay_says_can_stand_in_a_record_and_on_a_terminal() -> None:
    seen = RelaySeen.of(deployment(), {"name": "a\ud800b", "version": "\x1b[31m1\n2"})
    assert (seen.name, seen.version) == ("a?b", "?[31m1?2")
    assert json.loads(seen.model_dump_json())["name"] == "a?b"
