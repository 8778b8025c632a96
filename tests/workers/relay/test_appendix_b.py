"""The smallest relay that the unmodified ``buzz`` command and ``buzz-acp`` work with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workers.relay.builders import Talker, World
from tests.workers.relay.test_bridge import Caller
from workers.nostr.engram import EngramCodec


def tags_for(world: World, kind: int, channel: str, message: str) -> list[list[str]]:
    """What a command of that kind needs to be accepted from the channel's owner."""
    here = ["h", channel]
    return {
        0: [],
        5: [["e", message]],
        7: [["e", message]],
        9: [here],
        9000: [here, ["p", world.other.pubkey]],
        9001: [here, ["p", world.agent.pubkey]],
        9002: [here, ["name", "new"]],
        9005: [here, ["e", message]],
        9007: [["name", "another"]],
        9008: [here],
        9021: [["h", world.channel(creator=world.agent, visibility="open")]],
        9022: [["h", channel]],
        40003: [here, ["e", message]],
        40100: [here],
    }[kind]


@pytest.mark.parametrize(
    "kind", [0, 5, 7, 9, 9000, 9001, 9002, 9005, 9007, 9008, 9021, 9022, 40003, 40100]
)
def test_appendix_b_the_kinds_of_the_command_are_accepted(kind: int) -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.user, channel)
    author = world.agent if kind == 9022 else world.user
    tags = tags_for(world, kind, channel, message.id)
    event = world.sign(author, kind, tags, "{}")
    reply = Caller(world).post(author, "/events", event.to_dict())
    assert (reply.status, reply.body) == (
        200,
        {"event_id": event.id, "accepted": True, "message": ""},
    )


def test_appendix_b_engrams_are_accepted() -> None:
    world = World()
    codec = EngramCodec(world.agent, agent=world.agent.pubkey, owner=world.owner.pubkey)
    event = codec.seal("mem/x", "y", int(world.clock()))
    assert Caller(world).post(world.agent, "/events", event.to_dict()).body["accepted"] is True


@pytest.mark.parametrize("kind", [20001, 20002])
def test_appendix_b_presence_and_typing_are_accepted_on_the_socket(kind: int) -> None:
    world = World()
    channel = world.channel(world.agent)
    talker = Talker(world).log_in(world.agent)
    event = world.sign(world.agent, kind, [["h", channel]] if kind == 20002 else [], "online")
    assert talker.say("EVENT", event.to_dict()) == [["OK", event.id, True, ""]]


def test_appendix_b_turn_metrics_are_accepted_from_an_attested_agent() -> None:
    world = World()
    tags = [["p", world.owner.pubkey], ["agent", world.agent.pubkey]]
    event = world.sign(world.agent, 44200, tags, "x")
    assert Caller(world).post(world.agent, "/events", event.to_dict()).status == 200


@pytest.mark.parametrize("kind", [39000, 39001, 39002, 40099, 44100, 44101])
def test_appendix_b_the_kinds_that_a_relay_makes_are_made(kind: int) -> None:
    world = World()
    channel = world.channel(world.agent)
    world.accept(world.user, 9001, [["h", channel], ["p", world.agent.pubkey]])
    made = [event for event in world.state.store.timeline() if event.kind == kind]
    assert made
    assert {event.pubkey for event in made} == {world.state.keypair.pubkey}
    assert all(event.verify() for event in made)


def queries(me: str, channel: str, message: str, owner: str) -> dict[str, dict[str, Any]]:
    """The filters that the command and buzz-acp send, by what they are for."""
    return {
        "an event": {"ids": [message], "limit": 1},
        "a channel's messages": {"kinds": [9, 40002], "#h": [channel], "limit": 50},
        "messages since": {"kinds": [9], "#h": [channel], "since": 0, "until": 2**40},
        "a channel's metadata": {"kinds": [39000], "#d": [channel]},
        "a roster": {"kinds": [39002], "#d": [channel], "limit": 1},
        "own channels": {"kinds": [39002], "#p": [me]},
        "all channels": {"kinds": [39000], "limit": 500},
        "profiles": {"kinds": [0], "authors": [me], "limit": 1},
        "own reactions": {"kinds": [7], "authors": [me], "#e": [message]},
        "a thread": {"kinds": [9, 40002], "#e": [message], "#h": [channel]},
        "a canvas": {"kinds": [40100], "#h": [channel], "limit": 1},
        "guidelines": {"kinds": [48106], "authors": [owner], "#h": [channel]},
        "a memory": {"kinds": [30174], "authors": [me], "#d": ["a" * 64], "#p": [owner]},
        "memories": {"kinds": [30174], "authors": [me], "#p": [owner], "limit": 5000},
        "what names me": {"#p": [me]},
        "people by name": {"kinds": [0], "search": "jo", "search_mode": "prefix", "limit": 100},
        "words": {"kinds": [9, 40002, 45001, 45003], "search": "hello", "limit": 20},
        "a feed": {"#p": [me], "feed_types": ["mentions"], "limit": 20},
        "a bounded thread": {"kinds": [9], "#h": [channel], "#e": [message], "depth_limit": 2},
        "presence": {"kinds": [40902], "authors": [me]},
        "a page": {"kinds": [9], "#h": [channel], "until": 2**40, "before_id": "0" * 64},
    }


NAMES = list(queries("", "", "", ""))


@pytest.mark.parametrize("name", NAMES)
def test_appendix_b_every_query_is_answered_with_an_array(name: str) -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.user, channel, "hello", ["p", world.agent.pubkey])
    wanted = queries(world.agent.pubkey, channel, message.id, world.owner.pubkey)[name]
    reply = Caller(world).post(world.agent, "/query", [wanted])
    assert reply.status == 200
    assert isinstance(reply.body, list)
    assert all(set(row) >= {"id", "sig", "pubkey", "kind", "tags"} for row in reply.body)


def test_appendix_b_the_channel_stream_and_the_membership_stream() -> None:
    world = World()
    me = world.agent.pubkey
    talker = Talker(world).log_in(world.agent)
    talker.say("REQ", "membership-notif", {"kinds": [44100, 44101], "#p": [me], "since": 0})
    channel = world.channel(world.agent)
    ((_, _, notice),) = talker.outbox.take()
    assert json.loads(notice["content"])["channel_id"] == channel
    wanted = {"kinds": [9, 46010, 40007], "#h": [channel], "#p": [me], "since": 0}
    assert talker.say("REQ", f"ch-{channel}", wanted) == [["EOSE", f"ch-{channel}"]]
    message = world.message(world.user, channel, "do it", ["p", me])
    assert talker.outbox.take() == [["EVENT", f"ch-{channel}", message.to_dict()]]


def test_appendix_b_a_repeated_event_is_a_200() -> None:
    world = World()
    message = world.message(world.user, world.channel())
    reply = Caller(world).post(world.user, "/events", message.to_dict())
    assert (reply.status, reply.body["accepted"]) == (200, True)
