"""Events: strict reading, exact identity, signatures."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import nostr_sdk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.nostr.errors import EventFormatError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair

PAIR = Keypair.from_secret("0" * 63 + "3")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TAGS = st.lists(st.lists(TEXT, min_size=1, max_size=4), max_size=4)


def good() -> dict[str, Any]:
    return Event.sign(PAIR, 9, [["h", "x"], ["p", PAIR.pubkey]], "hello", 1_700_000_000).to_dict()


@settings(deadline=None)
@given(tags=TAGS, content=TEXT, kind=st.integers(0, 65535), moment=st.integers(0, 2**40))
def test_2_what_is_signed_verifies_and_survives_json(
    tags: list[list[str]], content: str, kind: int, moment: int
) -> None:
    event = Event.sign(PAIR, kind, tags, content, moment)
    again = Event.from_dict(json.loads(event.to_json()))
    assert again == event
    assert again.verify()
    assert [list(tag) for tag in again.tags] == tags


@settings(deadline=None)
@given(tags=TAGS, content=TEXT)
def test_2_the_library_agrees_on_identity_and_signature(
    tags: list[list[str]], content: str
) -> None:
    event = Event.sign(PAIR, 1, tags, content, 1_700_000_000)
    assert nostr_sdk.Event.from_json(event.to_json()).verify()


def test_2_the_id_is_the_hash_of_the_compact_array() -> None:
    event = Event.sign(PAIR, 1, [["t", "é"]], 'a"\n\\\u2028\x01', 5)
    text = json.dumps(
        [0, PAIR.pubkey, 5, 1, [["t", "é"]], 'a"\n\\\u2028\x01'],
        ensure_ascii=False,
        separators=(",", ":"),
    )
    assert event.id == hashlib.sha256(text.encode()).hexdigest()


def test_2_the_authors_own_p_tag_is_kept() -> None:
    assert Event.from_dict(good()).tags == (("h", "x"), ("p", PAIR.pubkey))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", "other"),
        ("kind", 10),
        ("created_at", 1_700_000_001),
        ("tags", [["h", "y"]]),
        ("pubkey", "ab" * 32),
        ("id", "cd" * 32),
        ("sig", "ef" * 64),
    ],
)
def test_2_a_changed_field_does_not_verify(field: str, value: object) -> None:
    assert not Event.from_dict({**good(), field: value}).verify()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "AB" * 32),
        ("id", "ab" * 31),
        ("id", None),
        ("pubkey", 7),
        ("pubkey", "ab" * 32 + "\n"),
        ("sig", "ab" * 32),
        ("created_at", -1),
        ("created_at", 1.5),
        ("created_at", True),
        ("created_at", 2**63),
        ("created_at", "1"),
        ("kind", 65536),
        ("kind", -1),
        ("kind", False),
        ("tags", None),
        ("tags", {}),
        ("tags", [[]]),
        ("tags", [["h", 1]]),
        ("tags", ["h"]),
        ("tags", [["h", "\ud800"]]),
        ("content", None),
        ("content", ["x"]),
        ("content", "\udfff"),
    ],
)
def test_2_a_malformed_field_is_refused(field: str, value: object) -> None:
    with pytest.raises(EventFormatError):
        Event.from_dict({**good(), field: value})


@pytest.mark.parametrize("field", ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"])
def test_2_a_missing_field_is_refused_by_name(field: str) -> None:
    data = good()
    del data[field]
    with pytest.raises(EventFormatError, match=field):
        Event.from_dict(data)


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_2_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(EventFormatError):
        Event.from_dict(value)


def test_2_foreign_fields_are_dropped() -> None:
    assert "extra" not in Event.from_dict({**good(), "extra": 1}).to_dict()


def test_2_a_text_that_has_no_utf8_is_not_signed() -> None:
    with pytest.raises(EventFormatError):
        Event.sign(PAIR, 1, [], "\ud800", 1)
