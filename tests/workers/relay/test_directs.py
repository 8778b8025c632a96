"""Direct conversations (§1.9, §2.6, §2.7, §3.7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workers.relay.builders import World
from workers.nostr.keys import Keypair


def opened(world: World, author: Keypair, *others: Keypair) -> dict[str, Any]:
    answer = world.submit(author, 41010, [["p", pair.pubkey] for pair in others])
    assert answer.accepted, answer
    found: dict[str, Any] = json.loads(answer.message.removeprefix("response:"))
    return found


def test_1_9_opening_a_conversation_answers_with_its_channel() -> None:
    world = World()
    found = opened(world, world.user, world.agent)
    assert found["created"] is True
    members = world.members(found["channel_id"])
    assert members == {world.user.pubkey: "member", world.agent.pubkey: "member"}


def test_1_9_the_same_people_find_the_same_conversation_again() -> None:
    world = World()
    first = opened(world, world.user, world.agent)
    world.clock.now += 1
    again = opened(world, world.agent, world.user, world.user)
    assert again == {"channel_id": first["channel_id"], "created": False}
    assert opened(world, world.user, world.agent, world.other)["created"] is True


def test_2_7_a_conversation_is_private_and_hidden_and_names_its_people() -> None:
    world = World()
    channel = opened(world, world.user, world.agent)["channel_id"]
    assert world.metadata(channel).tags == (
        ("d", channel),
        ("name", "dm"),
        ("private",),
        ("hidden",),
        ("p", world.user.pubkey),
        ("p", world.agent.pubkey),
        ("closed",),
        ("t", "dm"),
    )
    assert world.stored(world.other, {"kinds": [9, 39000, 39002, 41001, 41010]}) == []


def test_2_8_everybody_in_a_new_conversation_is_told() -> None:
    world = World()
    channel = opened(world, world.user, world.agent)["channel_id"]
    for pair in (world.user, world.agent):
        (notice,) = world.stored(pair, {"kinds": [44100], "#p": [pair.pubkey]})
        assert ("h", channel) in notice.tags


def test_3_7_conversations_are_listed_by_their_record() -> None:
    world = World()
    channel = opened(world, world.user, world.agent)["channel_id"]
    (record,) = world.query(world.agent, {"kinds": [41001], "#p": [world.agent.pubkey]})
    assert record.pubkey == world.state.keypair.pubkey
    assert record.tags == (("h", channel), ("p", world.user.pubkey), ("p", world.agent.pubkey))


@pytest.mark.parametrize("count", [0, 9])
def test_3_7_a_conversation_of_none_or_of_nine_others_is_refused(count: int) -> None:
    world = World()
    tags = [["p", Keypair.generate().pubkey] for _ in range(count)]
    answer = world.submit(world.user, 41010, tags)
    assert answer.message == "invalid: a direct conversation is with 1 to 8 other keys"
    assert not world.submit(world.user, 41010, [["p", world.user.pubkey]]).accepted
    assert not world.submit(world.user, 41010, [["p", "nonsense"]]).accepted


def test_an_open_channel_of_the_same_people_is_no_conversation() -> None:
    world = World()
    public = world.channel(world.agent, visibility="open", channel_type="dm")
    assert opened(world, world.user, world.agent)["channel_id"] != public
