"""The WebSocket protocol without a socket (§1.3–§1.6): message in, replies out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.relay.builders import NOW, Talker, World
from workers.nostr.event import Event
from workers.relay.limits import Limits

NOT_AUTHENTICATED = "auth-required: not authenticated"


def test_1_3_the_relay_speaks_first_with_32_random_bytes() -> None:
    world = World()
    one, other = Talker(world), Talker(world)
    assert len(bytes.fromhex(one.challenge)) == 32
    assert one.challenge != other.challenge


def test_1_4_before_authentication_nothing_is_told() -> None:
    world = World()
    talker = Talker(world)
    event = world.sign(world.user, 0, (), "{}")
    assert talker.say("REQ", "s", {"kinds": [0]}) == [
        ["NOTICE", "auth-required: authenticate before subscribing"],
        ["CLOSED", "s", NOT_AUTHENTICATED],
    ]
    assert talker.say("EVENT", event.to_dict()) == [["OK", event.id, False, NOT_AUTHENTICATED]]
    assert talker.say("COUNT", "s", {"kinds": [0]}) == [["CLOSED", "s", NOT_AUTHENTICATED]]
    assert len(world.state.store) == 0


@pytest.mark.parametrize(
    "url", ["ws://localhost:3600", "ws://localhost:3600/", "ws://127.0.0.1:3600", "ws://[::1]:3600"]
)
def test_trap_15_all_names_of_the_loopback_are_one(url: str) -> None:
    world = World()
    talker = Talker(world)
    event = talker.auth_event(world.agent, url=url)
    assert talker.say("AUTH", event.to_dict()) == [["OK", event.id, True, ""]]


@pytest.mark.parametrize("fault", ["kind", "signature", "challenge", "relay", "scheme", "late"])
def test_1_4_a_failed_proof_is_final(fault: str) -> None:
    world = World()
    talker = Talker(world)
    good = talker.auth_event(world.agent)
    relay, challenge, proof = good.tags
    sign = world.sign
    bad = {
        "kind": lambda: sign(world.agent, 27235, good.tags),
        "signature": lambda: Event.from_dict({**good.to_dict(), "content": "x"}),
        "challenge": lambda: sign(world.agent, 22242, [relay, ("challenge", "0" * 64), proof]),
        "relay": lambda: sign(world.agent, 22242, [("relay", "ws://h:3600"), challenge, proof]),
        "scheme": lambda: sign(
            world.agent, 22242, [("relay", "wss://localhost:3600"), challenge, proof]
        ),
        "late": lambda: sign(world.agent, 22242, good.tags, "", NOW - 61),
    }[fault]()
    assert talker.say("AUTH", bad.to_dict()) == [
        ["OK", bad.id, False, "auth-required: verification failed"]
    ]
    assert talker.say("AUTH", good.to_dict()) == [
        ["OK", good.id, False, "auth-required: authentication already failed"]
    ]
    assert talker.session.pubkey is None


def test_1_4_a_second_proof_after_success_is_refused_and_changes_nothing() -> None:
    world = World()
    talker = Talker(world).log_in(world.agent)
    event = talker.auth_event(world.user)
    assert talker.say("AUTH", event.to_dict()) == [
        ["OK", event.id, False, "auth-required: already authenticated"]
    ]
    assert talker.session.pubkey == world.agent.pubkey


def test_1_4_a_stranger_is_no_member() -> None:
    world = World()
    stranger = World().agent
    talker = Talker(world)
    tags = [["relay", "ws://localhost:3600"], ["challenge", talker.challenge]]
    event = world.sign(stranger, 22242, tags)
    assert talker.say("AUTH", event.to_dict()) == [
        ["OK", event.id, False, "restricted: not a relay member"]
    ]


def test_2_13_two_attestations_count_as_none() -> None:
    world = World()
    fresh = World().agent
    talker = Talker(world)
    proof = talker.auth_event(fresh).tags[-1]
    event = talker.auth_event(fresh, proof)
    assert talker.say("AUTH", event.to_dict())[0][3] == "restricted: not a relay member"


def test_2_13_another_owners_attestation_does_not_admit() -> None:
    world, elsewhere = World(), World()
    there = Talker(elsewhere)
    talker = Talker(world)
    proof = there.auth_event(elsewhere.agent).tags[-1]
    tags = [["relay", "ws://localhost:3600"], ["challenge", talker.challenge], proof]
    event = world.sign(elsewhere.agent, 22242, tags)
    assert talker.say("AUTH", event.to_dict())[0][3] == "restricted: not a relay member"


def test_1_4_a_read_only_connection_may_not_publish() -> None:
    world = World()
    talker = Talker(world)
    event = talker.auth_event(world.agent, ["class", "observer"])
    assert talker.say("AUTH", event.to_dict()) == [["OK", event.id, True, "class: read-only"]]
    profile = world.sign(world.agent, 0, (), "{}")
    assert talker.say("EVENT", profile.to_dict()) == [
        ["OK", profile.id, False, "restricted: read-only connection may not publish"]
    ]
    assert talker.say("REQ", "s", {"kinds": [0]}) == [["EOSE", "s"]]


def test_1_4_the_owner_needs_no_attestation() -> None:
    world = World()
    Talker(world).log_in(world.owner)


def test_2_13_the_owner_is_recorded_on_auth() -> None:
    world = World()
    fresh = World().agent
    Talker(world).log_in(fresh)
    assert world.state.owners[fresh.pubkey] == world.owner.pubkey


def test_1_5_stored_then_eose_then_live() -> None:
    world = World()
    channel = world.channel(world.agent)
    stored = world.message(world.user, channel, "stored", ["p", world.agent.pubkey])
    talker = Talker(world).log_in(world.agent)
    wanted = {"kinds": [9], "#h": [channel], "#p": [world.agent.pubkey], "since": NOW - 5}
    assert talker.say("REQ", "ch", wanted) == [["EVENT", "ch", stored.to_dict()], ["EOSE", "ch"]]
    live = world.message(world.user, channel, "live", ["p", world.agent.pubkey])
    world.message(world.user, channel, "not for you")
    assert talker.outbox.take() == [["EVENT", "ch", live.to_dict()]]


def test_1_5_stored_results_are_de_duplicated_across_filters() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel)
    talker = Talker(world).log_in(world.user)
    found = talker.say("REQ", "s", {"kinds": [9], "#h": [channel]}, {"ids": [message.id]})
    assert found == [["EVENT", "s", message.to_dict()], ["EOSE", "s"]]


def test_1_5_live_events_are_delivered_once_to_a_subscription() -> None:
    world = World()
    channel = world.channel()
    talker = Talker(world).log_in(world.user)
    wanted = {"kinds": [9], "#h": [channel]}
    talker.say("REQ", "s", wanted, wanted)
    world.message(world.user, channel)
    assert len(talker.outbox.take()) == 1


def test_trap_6_a_global_subscription_gets_no_live_channel_events() -> None:
    world = World()
    channel = world.channel()
    talker = Talker(world).log_in(world.user)
    talker.say("REQ", "s", {"kinds": [9, 0]})
    talker.say("REQ", "mixed", {"kinds": [9], "#h": [channel]}, {"kinds": [0]})
    world.message(world.user, channel)
    assert talker.outbox.take() == []
    profile = world.accept(world.user, 0, (), "{}")
    assert talker.outbox.take() == [["EVENT", name, profile.to_dict()] for name in ("s", "mixed")]


def test_2_8_a_global_subscription_hears_of_membership() -> None:
    world = World()
    talker = Talker(world).log_in(world.agent)
    wanted = {"kinds": [44100, 44101], "#p": [world.agent.pubkey], "since": NOW - 5}
    assert talker.say("REQ", "membership-notif", wanted) == [["EOSE", "membership-notif"]]
    channel = world.channel(world.agent)
    ((_, _, notice),) = talker.outbox.take()
    assert notice["kind"] == 44100
    world.accept(world.user, 9001, [["h", channel], ["p", world.agent.pubkey]])
    ((_, _, notice),) = talker.outbox.take()
    assert notice["kind"] == 44101


def test_1_5_an_unreadable_channel_closes_and_is_dropped_beside_a_readable_one() -> None:
    world = World()
    mine, theirs = world.channel(creator=world.agent), world.channel()
    talker = Talker(world).log_in(world.agent)
    assert talker.say("REQ", "s", {"kinds": [9], "#h": [theirs]}) == [
        ["CLOSED", "s", "restricted: not a channel member"]
    ]
    assert talker.say("REQ", "s", {"kinds": [9], "#h": [theirs, mine]}) == [["EOSE", "s"]]
    world.message(world.user, theirs)
    assert talker.outbox.take() == []
    world.message(world.agent, mine)
    assert len(talker.outbox.take()) == 1


def test_1_5_access_is_revoked_with_membership() -> None:
    world = World()
    channel = world.channel(world.agent)
    talker = Talker(world).log_in(world.agent)
    talker.say("REQ", "s", {"kinds": [9], "#h": [channel]})
    world.accept(world.user, 9001, [["h", channel], ["p", world.agent.pubkey]])
    assert talker.outbox.take() == [["CLOSED", "s", "restricted: channel access revoked"]]
    world.message(world.user, channel)
    assert talker.outbox.take() == []


def test_1_5_access_is_revoked_when_a_channel_becomes_private_or_goes() -> None:
    world = World()
    channel, gone = world.channel(visibility="open"), world.channel(visibility="open")
    talker = Talker(world).log_in(world.other)
    talker.say("REQ", "s", {"kinds": [9], "#h": [channel]})
    talker.say("REQ", "t", {"kinds": [9], "#h": [gone]})
    world.accept(world.user, 9002, [["h", channel], ["visibility", "private"]])
    world.accept(world.user, 9008, [["h", gone]])
    assert talker.outbox.take() == [
        ["CLOSED", name, "restricted: channel access revoked"] for name in ("s", "t")
    ]


def test_trap_17_close_is_answered_with_an_empty_reason() -> None:
    world = World()
    channel = world.channel()
    talker = Talker(world).log_in(world.user)
    talker.say("REQ", "s", {"kinds": [9], "#h": [channel]})
    assert talker.say("CLOSE", "s") == [["CLOSED", "s", ""]]
    assert talker.say("CLOSE", "never") == [["CLOSED", "never", ""]]
    world.message(world.user, channel)
    assert talker.outbox.take() == []


def test_1_5_a_req_of_a_known_name_replaces_it() -> None:
    world = World()
    one, two = world.channel(), world.channel()
    talker = Talker(world).log_in(world.user)
    talker.say("REQ", "s", {"kinds": [9], "#h": [one]})
    talker.say("REQ", "s", {"kinds": [9], "#h": [two]})
    world.message(world.user, one)
    assert talker.outbox.take() == []
    world.message(world.user, two)
    assert len(talker.outbox.take()) == 1


def test_1_5_a_search_is_one_shot() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel, "needle")
    talker = Talker(world).log_in(world.user)
    wanted = {"search": "needle", "kinds": [9]}
    assert talker.say("REQ", "s", wanted) == [["EVENT", "s", message.to_dict()], ["EOSE", "s"]]
    world.message(world.user, channel, "needle again")
    assert talker.outbox.take() == []
    assert talker.say("REQ", "s", wanted, {"kinds": [9]}) == [
        ["CLOSED", "s", "error: mixed search and non-search filters not supported"]
    ]


def test_1_5_gates_close_with_their_reason() -> None:
    world = World()
    talker = Talker(world).log_in(world.user)
    for wanted, reason in (
        ({}, "restricted: p-gated events require #p matching your pubkey"),
        (
            {"kinds": [30174]},
            "restricted: agent-engram reads require authors=[self] or #p=[self]",
        ),
        ({"kinds": [30300]}, "restricted: author-only kinds require authors=[self]"),
    ):
        assert talker.say("REQ", "s", wanted) == [["CLOSED", "s", reason]]
        assert talker.say("COUNT", "s", wanted) == [["CLOSED", "s", reason]]


def test_1_3_count() -> None:
    world = World()
    channel = world.channel()
    world.message(world.user, channel)
    talker = Talker(world).log_in(world.user)
    wanted = {"kinds": [9], "#h": [channel]}
    assert talker.say("COUNT", "s", wanted) == [["COUNT", "s", {"count": 1}]]


def test_1_6_ok_carries_the_words_of_ingest() -> None:
    world = World()
    channel = world.channel()
    talker = Talker(world).log_in(world.user)
    event = world.sign(world.user, 9, [["h", channel]], "x")
    assert talker.say("EVENT", event.to_dict()) == [["OK", event.id, True, ""]]
    again = talker.say("EVENT", event.to_dict())
    assert again[0][:3] == ["OK", event.id, True]
    assert again[0][3].startswith("duplicate:")
    forged = {**event.to_dict(), "content": "y"}
    assert talker.say("EVENT", forged)[0][2] is False


def test_1_6_ephemeral_events_reach_their_channel() -> None:
    world = World()
    channel = world.channel(world.agent)
    reader = Talker(world).log_in(world.user)
    reader.say("REQ", "s", {"kinds": [20002], "#h": [channel]})
    writer = Talker(world).log_in(world.agent)
    typing = world.sign(world.agent, 20002, [["h", channel]])
    assert writer.say("EVENT", typing.to_dict()) == [["OK", typing.id, True, ""]]
    assert reader.outbox.take() == [["EVENT", "s", typing.to_dict()]]


def test_2_10_presence_ends_with_the_last_connection() -> None:
    world = World()
    one, other = Talker(world).log_in(world.agent), Talker(world).log_in(world.agent)
    online = world.sign(world.agent, 20001, (), "online")
    one.say("EVENT", online.to_dict())
    one.session.close()
    assert world.agent.pubkey in world.state.presence
    other.session.close()
    assert world.agent.pubkey not in world.state.presence


def test_1_3_limits_of_subscriptions_filters_and_channels() -> None:
    world = World(limits=Limits(subscriptions=2, filters=2, explicit_channels=3))
    channel = world.channel()
    talker = Talker(world).log_in(world.user)
    wanted = {"kinds": [9], "#h": [channel]}
    assert talker.say("REQ", "s", wanted, wanted, wanted) == [
        ["CLOSED", "s", "error: too many filters"]
    ]
    assert talker.say("REQ", "s", {"kinds": [9], "#h": ["a", "b", "c", "d"]}) == [
        ["CLOSED", "s", "restricted: too many explicit channels"]
    ]
    for name in "ab":
        assert talker.say("REQ", name, wanted) == [["EOSE", name]]
    assert talker.say("REQ", "c", wanted) == [["CLOSED", "c", "error: too many subscriptions"]]
    assert talker.say("REQ", "b", wanted) == [["EOSE", "b"]]
    assert talker.say("COUNT", "c", wanted) == [["COUNT", "c", {"count": 0}]]


@pytest.mark.parametrize("name", ["", "x" * 257, "é" * 129, 7, None, [], "\ud800"])
def test_1_3_a_subscription_id_has_1_to_256_bytes(name: Any) -> None:
    talker = Talker(World())
    (reply,) = talker.say("REQ", name, {"kinds": [9]})
    assert reply[0] == "NOTICE"
    assert reply[1].startswith("invalid message: ")


HOSTILE = [
    "",
    "x",
    "{}",
    "[]",
    "null",
    "7",
    "[null]",
    '["NOPE"]',
    "[[]]",
    '["EVENT"]',
    '["EVENT",null]',
    '["EVENT",{}]',
    '["EVENT",{},{}]',
    '["AUTH"]',
    '["AUTH","x"]',
    '["REQ"]',
    '["REQ","s"]',
    '["REQ","s",null]',
    '["REQ","s",{"kinds":"x"}]',
    '["REQ","s",{"limit":1e999}]',
    '["REQ","s",{"limit":NaN}]',
    '["COUNT","s"]',
    '["CLOSE"]',
    '["CLOSE",{}]',
    "[" * 100_000,
    '["REQ","s",' + '{"a":' * 50_000,
    '["REQ","s",{"limit":' + "9" * 5000 + "}]",
    b"\xff\xfe\x00",
    b'["REQ","\xed\xa0\x80",{}]',
    '["EVENT",{"id":"\\ud800"}]',
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("is_proven", [False, True])
def test_1_3_a_hostile_message_gets_a_notice(text: str | bytes, is_proven: bool) -> None:
    world = World()
    talker = Talker(world)
    if is_proven:
        talker.log_in(world.user)
    replies = talker.raw(text)
    assert replies[-1][0] in ("NOTICE", "CLOSED")
    if replies[-1][0] == "NOTICE":
        assert replies[-1][1].startswith("invalid message: ")
    assert len(world.state.store) == 0


@pytest.mark.parametrize(("off", "accepted"), [(0, True), (60, True), (-60, True), (61, False)])
def test_1_4_a_minute_of_clock_skew_is_tolerated(off: int, accepted: bool) -> None:
    world = World()
    talker = Talker(world)
    good = talker.auth_event(world.agent)
    event = world.sign(world.agent, 22242, good.tags, "", NOW + off)
    assert talker.say("AUTH", event.to_dict())[0][2] is accepted


@pytest.mark.parametrize("name", ["challenge", "relay"])
def test_1_4_the_first_of_two_tags_counts(name: str) -> None:
    world = World()
    talker = Talker(world)
    good = talker.auth_event(world.agent)
    after = world.sign(world.agent, 22242, [*good.tags, (name, "other")])
    before = world.sign(world.agent, 22242, [(name, "other"), *good.tags])
    assert Talker(world).say("AUTH", before.to_dict())[0][2] is False
    assert talker.say("AUTH", after.to_dict())[0][2] is True


def test_1_4_interactive_is_the_usual_class() -> None:
    world = World()
    talker = Talker(world)
    event = talker.auth_event(world.agent, ["class", "interactive"])
    assert talker.say("AUTH", event.to_dict()) == [["OK", event.id, True, ""]]


def test_1_4_proofs_are_never_stored() -> None:
    world = World()
    talker = Talker(world).log_in(world.agent)
    event = talker.auth_event(world.agent)
    assert talker.say("EVENT", event.to_dict())[0][2:] == [
        False,
        "invalid: authentication events are never stored",
    ]
    assert len(world.state.store) == 0


def test_1_4_a_failed_connection_stays_and_is_told_nothing() -> None:
    world = World()
    talker = Talker(world)
    bad = world.sign(world.agent, 22242, [["relay", "ws://x"], ["challenge", "y"]])
    talker.say("AUTH", bad.to_dict())
    assert talker.say("REQ", "s", {"kinds": [0]})[-1] == ["CLOSED", "s", NOT_AUTHENTICATED]


def test_trap_22_the_publisher_hears_its_own_echo() -> None:
    world = World()
    channel = world.channel()
    talker = Talker(world).log_in(world.user)
    talker.say("REQ", "s", {"kinds": [9], "#h": [channel]})
    event = world.sign(world.user, 9, [["h", channel]], "me")
    replies = talker.say("EVENT", event.to_dict())
    assert sorted(reply[0] for reply in replies) == ["EVENT", "OK"]


def test_trap_3_a_subscription_reaches_back_to_its_since() -> None:
    world = World()
    channel = world.channel(world.agent)
    mention = ["p", world.agent.pubkey]
    world.message(world.user, channel, "too early", mention)
    world.clock.now += 5
    between = world.message(world.user, channel, "between", mention)
    world.clock.now += 5
    talker = Talker(world).log_in(world.agent)
    wanted = {"kinds": [9], "#h": [channel], "#p": [world.agent.pubkey], "since": NOW + 5}
    assert talker.say("REQ", "s", wanted) == [["EVENT", "s", between.to_dict()], ["EOSE", "s"]]


def test_trap_4_stored_events_come_newest_first() -> None:
    world = World()
    channel = world.channel()
    for text in "abc":
        world.message(world.user, channel, text)
        world.clock.now += 1
    talker = Talker(world).log_in(world.user)
    replies = talker.say("REQ", "s", {"kinds": [9], "#h": [channel]})
    assert [reply[2]["content"] for reply in replies[:-1]] == ["c", "b", "a"]


def test_1_5_live_delivery_looks_at_membership_for_every_event() -> None:
    world = World()
    left, kept = world.channel(world.agent), world.channel(world.agent)
    talker = Talker(world).log_in(world.agent)
    talker.say("REQ", "s", {"kinds": [9], "#h": [left, kept]})
    world.accept(world.user, 9001, [["h", left], ["p", world.agent.pubkey]])
    world.message(world.user, left, "not for you")
    message = world.message(world.user, kept, "for you")
    assert talker.outbox.take() == [["EVENT", "s", message.to_dict()]]


def test_2_7_group_state_is_not_pushed_to_a_global_subscription() -> None:
    world = World()
    talker = Talker(world).log_in(world.user)
    talker.say("REQ", "s", {"kinds": [39000, 39001, 39002, 40099]})
    world.channel(world.agent)
    assert talker.outbox.take() == []


def test_1_7_nothing_is_rate_limited() -> None:
    world = World()
    talker = Talker(world).log_in(world.user)
    replies = [talker.say("REQ", "s", {"kinds": [0]}) for _ in range(300)]
    assert replies == [[["EOSE", "s"]]] * 300


def test_1_5_empty_kinds_match_nothing() -> None:
    world = World()
    world.accept(world.user, 0, (), "{}")
    talker = Talker(world).log_in(world.user)
    assert talker.say("REQ", "s", {"kinds": []}) == [["EOSE", "s"]]


def test_trap_12_a_request_without_kinds_needs_ids_or_the_own_key() -> None:
    world = World()
    profile = world.accept(world.user, 0, (), "{}")
    talker = Talker(world).log_in(world.user)
    assert talker.say("REQ", "s", {"authors": [world.user.pubkey]})[-1][0] == "CLOSED"
    assert talker.say("REQ", "s", {"#p": [world.user.pubkey]})[-1] == ["EOSE", "s"]
    assert talker.say("REQ", "s", {"ids": [profile.id]})[0] == ["EVENT", "s", profile.to_dict()]
