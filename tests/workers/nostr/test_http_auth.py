"""Signed HTTP requests (NIP-98)."""

from __future__ import annotations

import base64
import hashlib

import pytest

from workers.nostr.errors import HttpAuthError
from workers.nostr.event import Event
from workers.nostr.http_auth import AUTH_KIND, authorize, check, normalise_url
from workers.nostr.keys import Keypair

PAIR = Keypair.generate()
URL = "http://localhost:3600/query"
NOW = 1_700_000_000.0
BODY = b"[]"


def header(
    *,
    kind: int = AUTH_KIND,
    url: str = URL,
    method: str = "POST",
    payload: str | None = hashlib.sha256(BODY).hexdigest(),
    moment: int = int(NOW),
) -> str:
    tags = [["u", url], ["method", method]]
    if payload is not None:
        tags.append(["payload", payload])
    text = Event.sign(PAIR, kind, tags, "", moment).to_json()
    return "Nostr " + base64.b64encode(text.encode()).decode()


def fault(value: str | None, url: str = URL, method: str = "POST", body: bytes = BODY) -> str:
    with pytest.raises(HttpAuthError) as caught:
        check(value, url=url, method=method, body=body, now=NOW)
    return str(caught.value)


def test_1_8_what_is_authorised_is_accepted() -> None:
    made = authorize(PAIR, URL, "POST", BODY, NOW)
    assert check(made, url=URL, method="post", body=BODY, now=NOW).pubkey == PAIR.pubkey


def test_1_8_every_authorisation_has_its_own_id() -> None:
    made = [authorize(PAIR, URL, "POST", BODY, NOW) for _ in range(2)]
    ids = {check(one, url=URL, method="POST", body=BODY, now=NOW).id for one in made}
    assert len(ids) == 2


@pytest.mark.parametrize("moment", [int(NOW) - 60, int(NOW) + 60])
def test_1_8_a_minute_of_clock_skew_is_tolerated(moment: int) -> None:
    check(header(moment=moment), url=URL, method="POST", body=BODY, now=NOW)


@pytest.mark.parametrize("moment", [int(NOW) - 61, int(NOW) + 61])
def test_1_8_more_than_a_minute_is_not(moment: int) -> None:
    assert fault(header(moment=moment)) == "NIP-98: timestamp too far from server time"


def test_1_8_a_missing_payload_tag_is_not_checked() -> None:
    check(header(payload=None), url=URL, method="POST", body=BODY, now=NOW)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "missing Nostr auth"),
        ("", "missing Nostr auth"),
        ("Bearer x", "missing Nostr auth"),
        ("Nostr !!!", "invalid base64 in Nostr auth"),
        ("Nostr abc", "invalid base64 in Nostr auth"),
        ("Nostr " + "\u00e9", "invalid base64 in Nostr auth"),
        (header(kind=1), "NIP-98: event kind must be 27235"),
        (header(url="http://127.0.0.1:3600/query"), "NIP-98: URL mismatch"),
        (header(url="http://localhost/query"), "NIP-98: URL mismatch"),
        (header(url="https://localhost:3600/query"), "NIP-98: URL mismatch"),
        (header(url="http://localhost:3600/count"), "NIP-98: URL mismatch"),
        (header(url="http://localhost:3600/query?x=1"), "NIP-98: URL mismatch"),
        (header(url="nonsense"), "NIP-98: URL mismatch"),
        (header(method="GET"), "NIP-98: method mismatch"),
        (header(payload="0" * 64), "NIP-98: payload hash mismatch"),
    ],
)
def test_1_8_every_fault_has_its_reason(value: str | None, reason: str) -> None:
    assert fault(value) == reason


def test_1_8_what_is_no_event_says_so() -> None:
    for text in (b"[]", b"{", b"\xff", b"null", b"[" * 5000):
        value = "Nostr " + base64.b64encode(text).decode()
        assert fault(value).startswith("NIP-98: invalid event: ")


def test_1_8_a_forged_event_is_refused() -> None:
    data = Event.sign(PAIR, AUTH_KIND, [["u", URL], ["method", "POST"]], "", int(NOW)).to_dict()
    data["pubkey"] = Keypair.generate().pubkey
    text = Event.from_dict(data).to_json().encode()
    value = "Nostr " + base64.b64encode(text).decode()
    assert fault(value) == "NIP-98: invalid id or signature"


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("HTTP://LocalHost:3600/a/", "http://localhost:3600/a", True),
        ("http://h:80/", "http://h", True),
        ("https://h:443/x", "https://h/x", True),
        ("http://h:443/x", "http://h/x", False),
        ("http://h/A", "http://h/a", False),
        ("http://h/x?y=1", "http://h/x", False),
        ("http://[::1]:1/", "http://[::1]:1", True),
        ("http://localhost/", "http://127.0.0.1/", False),
    ],
)
def test_1_8_urls_are_compared_in_normal_form(left: str, right: str, same: bool) -> None:
    assert (normalise_url(left) == normalise_url(right)) is same


@pytest.mark.parametrize("text", ["", "x", "http://", "http://h:99999/", "http://[::1/"])
def test_1_8_what_is_no_url_has_no_normal_form(text: str) -> None:
    assert normalise_url(text) is None
