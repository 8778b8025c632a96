"""Memories (NIP-AE; vectors of Appendix A)."""

from __future__ import annotations

import pytest

from tests.workers.nostr import nip44
from workers.nostr.engram import (
    ENGRAM_KIND,
    Engram,
    EngramCodec,
    conversation_key,
    envelope_fault,
    next_timestamp,
    slug_of,
)
from workers.nostr.errors import EngramError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair

AGENT = Keypair.from_secret("0" * 63 + "1")
OWNER = Keypair.from_secret("0" * 63 + "2")
STRANGER = Keypair.from_secret("0" * 63 + "4")
CODEC = EngramCodec(AGENT, agent=AGENT.pubkey, owner=OWNER.pubkey)
OWNERS_CODEC = EngramCodec(OWNER, agent=AGENT.pubkey, owner=OWNER.pubkey)
KEY = bytes.fromhex("c41c775356fd92eadc63ff5a0dc1da211b268cbea22316767095b2871ea1412d")


def raw(body: str, slug: str = "mem/x", moment: int = 5, pair: Keypair = AGENT) -> Event:
    """An engram event around any body."""
    tags = [["d", CODEC.d_tag(slug)], ["p", OWNER.pubkey]]
    return Event.sign(pair, ENGRAM_KIND, tags, AGENT.encrypt(OWNER.pubkey, body), moment)


def test_2_14_the_key_of_agent_and_owner() -> None:
    assert conversation_key(AGENT, OWNER.pubkey) == KEY
    assert conversation_key(OWNER, AGENT.pubkey) == KEY


@pytest.mark.parametrize(
    ("slug", "d"),
    [
        ("core", "bdc233238ffe52e272b44cc233c8f33a2bc510b08be04495b225964283be4a90"),
        ("mem/example", "72d4f9629106451505d7d341ea85bb3ebad4f654fcfd2aad100d5a35f8a85cba"),
        (
            "mem/notes/2026-05-12",
            "31651571a312780cfdc1f0b706b682ac9f3f51a053e8dca76fe57710bae5a4d4",
        ),
    ],
)
def test_2_14_d_tags(slug: str, d: str) -> None:
    assert CODEC.d_tag(slug) == d
    assert OWNERS_CODEC.d_tag(slug) == d


def test_2_14_the_event_of_the_published_body_and_nonce() -> None:
    body = '{"slug":"mem/example","value":"hello, agent memory"}'
    content = nip44.encrypt(KEY, bytes(31) + b"\x01", body)
    tags = [["d", CODEC.d_tag("mem/example")], ["p", OWNER.pubkey]]
    event = Event.sign(AGENT, ENGRAM_KIND, tags, content, 1_700_000_000)
    assert event.id == "f4a594177b7aeea4fe99a09efbf74ae85f0126244f322135682c405888a38689"
    assert OWNERS_CODEC.open(event) == Engram(
        "mem/example", "hello, agent memory", event.id, 1_700_000_000
    )


@pytest.mark.parametrize("size", [1, 31, 32, 33, 255, 256, 257, 1000, 5000])
def test_2_14_the_library_reads_what_the_second_opinion_writes(size: int) -> None:
    assert AGENT.decrypt(OWNER.pubkey, nip44.encrypt(KEY, bytes(32), "x" * size)) == "x" * size


@pytest.mark.parametrize(
    ("slug", "value"), [("mem/a/b-c_d", "text\nwith é"), ("mem/a", ""), ("core", "me")]
)
def test_2_14_what_is_sealed_opens_at_both_ends(slug: str, value: str) -> None:
    event = CODEC.seal(slug, value, 9)
    assert event.tags == (("d", CODEC.d_tag(slug)), ("p", OWNER.pubkey))
    for codec in (CODEC, OWNERS_CODEC):
        assert codec.open(event) == Engram(slug, value, event.id, 9)


def test_2_14_a_tombstone_has_no_value() -> None:
    assert CODEC.open(CODEC.seal("mem/a", None, 1)).value is None


@pytest.mark.parametrize(
    "body",
    [
        '{"slug":"mem/x","value":"a","value":"b"}',
        '{"slug":"mem/x","value":"a","extra":{"k":1,"k":2}}',
        '{"slug":"mem/x"}',
        '{"slug":"mem/x","value":1}',
        '{"slug":"mem/X","value":"a"}',
        '{"slug":"mem/other","value":"a"}',
        '{"slug":7,"value":"a"}',
        '{"value":"a"}',
        "[]",
        "null",
        "not json",
        "[" * 50_000,
    ],
)
def test_2_14_a_malformed_body_is_no_memory(body: str) -> None:
    with pytest.raises(EngramError):
        CODEC.open(raw(body))
    assert CODEC.heads([raw(body)]) == {}


@pytest.mark.parametrize("body", ['{"slug":"core"}', '{"slug":"core","profile":null}'])
def test_2_14_core_needs_a_profile(body: str) -> None:
    with pytest.raises(EngramError):
        CODEC.open(raw(body, "core"))


def test_2_14_an_event_of_another_kind_author_owner_or_signature_is_no_memory() -> None:
    good = CODEC.seal("mem/x", "a", 5)
    wrong = [
        Event.sign(AGENT, 30175, good.tags, good.content, 5),
        Event.sign(STRANGER, ENGRAM_KIND, good.tags, good.content, 5),
        Event.sign(AGENT, ENGRAM_KIND, good.tags[:1], good.content, 5),
        Event.sign(AGENT, ENGRAM_KIND, [*good.tags, ("p", STRANGER.pubkey)], good.content, 5),
        Event.sign(AGENT, ENGRAM_KIND, [*good.tags, good.tags[0]], good.content, 5),
        Event.sign(AGENT, ENGRAM_KIND, good.tags, good.content[:-4] + "AAAA", 5),
        Event.from_dict({**good.to_dict(), "created_at": 6}),
    ]
    for event in wrong:
        with pytest.raises(EngramError):
            CODEC.open(event)


def test_2_14_the_head_is_the_newest_then_the_lowest_id() -> None:
    old, one, other = (CODEC.seal("mem/x", value, t) for value, t in (("o", 1), ("a", 2), ("b", 2)))
    winner = min((one, other), key=lambda event: event.id)
    for order in ((old, one, other), (other, one, old), (one, old, other)):
        head = CODEC.head("mem/x", order)
        assert head is not None
        assert head.event_id == winner.id
    assert CODEC.head("mem/y", [old]) is None


def test_2_14_a_broken_event_does_not_hide_the_head() -> None:
    head = CODEC.head("mem/x", [raw("junk", moment=9), CODEC.seal("mem/x", "a", 1)])
    assert head is not None
    assert head.value == "a"


def test_2_14_a_write_is_later_than_its_head() -> None:
    assert next_timestamp(100.9, None) == 100
    assert next_timestamp(100, Engram("mem/x", "", "a", 100)) == 101
    assert next_timestamp(100, Engram("mem/x", "", "a", 50)) == 100


@pytest.mark.parametrize(
    ("text", "slug"),
    [("core", "core"), ("a", "mem/a"), ("mem/a", "mem/a"), ("a/b-c_1", "mem/a/b-c_1")],
)
def test_2_14_slugs(text: str, slug: str) -> None:
    assert slug_of(text) == slug


@pytest.mark.parametrize(
    "text", ["", "A", "/a", "a/", "a//b", "-a", "a b", "é", "a" * 65, "/".join(["a" * 60] * 5)]
)
def test_2_14_what_is_no_slug_is_refused(text: str) -> None:
    with pytest.raises(EngramError):
        slug_of(text)


def test_2_14_what_cannot_be_written() -> None:
    for slug, value in (("core", None), ("mem/x", "a" * 65_536), ("Mem", "a")):
        with pytest.raises(EngramError):
            CODEC.seal(slug, value, 1)
    with pytest.raises(EngramError):
        OWNERS_CODEC.seal("mem/x", "a", 1)


def test_2_14_memories_are_between_two_of_which_we_are_one() -> None:
    for agent, owner in ((OWNER, STRANGER), (AGENT, AGENT)):
        with pytest.raises(EngramError):
            EngramCodec(AGENT, agent=agent.pubkey, owner=owner.pubkey)


def test_2_14_the_envelope_as_a_relay_sees_it() -> None:
    good = CODEC.seal("mem/x", "a", 1)
    d, p = good.tags
    assert envelope_fault(good.tags, good.content) is None
    for tags in ((d,), (p,), (d, d, p), (d, p, p), (("d", "x"), p), (d, ("p", "A" * 64))):
        assert envelope_fault(tags, good.content)
    for content in ("", "!!!", "AAAA", "é", "A" * 200):
        assert envelope_fault(good.tags, content)
