"""Rules of the command that no test of its use states (§3); see ``command_rules`` for the rest."""

from __future__ import annotations

import json
import time

from tests.workers.agent.worlds import World
from workers.nostr.event import Event


async def fill(world: World, count: int) -> None:
    """Messages of the user, a second apart, put into the relay without sockets."""
    author, now = world.user.keypair, int(time.time())
    for number in range(count):
        event = Event.sign(author, 9, [["h", world.channel]], str(number), now - count + number)
        assert world.relay._core.submit(event, author.pubkey, over_http=True).accepted


def test_3_3_get_gives_fifty_by_default_and_two_hundred_at_most(world: World) -> None:
    world.run(fill(world, 205))
    words = ("messages", "get", "--channel", world.channel)
    assert len(world.buzz(*words).data) == 50
    rows = world.buzz(*words, "--limit", "1000").data
    assert [row["content"] for row in rows] == [str(number) for number in range(5, 205)]


def test_3_3_get_reads_between_two_times(world: World) -> None:
    world.run(fill(world, 9))
    words = ("messages", "get", "--channel", world.channel)
    times = {row["content"]: row["created_at"] for row in world.buzz(*words).data}
    rows = world.buzz(*words, "--since", str(times["3"]), "--before", str(times["5"])).data
    assert [row["content"] for row in rows] == ["3", "4", "5"]


def test_3_3_a_thread_of_an_unknown_event_is_exit_1(world: World) -> None:
    told = world.buzz("messages", "thread", "--channel", world.channel, "--event", "0" * 64)
    assert told.code == 1


def test_3_2_a_create_result_adds_the_id(world: World) -> None:
    told = world.buzz(
        "channels", "create", "--name", "x", "--type", "stream", "--visibility", "open"
    )
    assert set(told.data) == {"event_id", "accepted", "message", "channel_id"}


def test_3_5_the_name_that_is_set_is_the_display_name(world: World) -> None:
    world.buzz("users", "set-profile", "--name", "Ada")
    profile = json.loads(world.relay.timeline()[-1].content)
    assert profile["display_name"] == "Ada"
    assert "name" not in profile


def test_3_5_profiles_carry_the_attestation(world: World) -> None:
    world.buzz("users", "set-profile", "--about", "x")
    assert world.relay.timeline()[-1].tags[-1] == world.agent.attestation.to_tag()


def test_3_6_memories_carry_no_attestation(world: World) -> None:
    world.buzz("mem", "set", "x", "y")
    assert [tag[0] for tag in world.relay.timeline()[-1].tags] == ["d", "p"]


def test_3_6_two_writes_within_a_second_keep_their_order(world: World) -> None:
    for text in ("one", "two", "three"):
        assert world.buzz("mem", "set", "x", text).code == 0
    assert world.buzz("mem", "get", "x").output == "three"


def test_3_7_an_opened_conversation_is_named_and_listed(world: World) -> None:
    told = world.buzz("dms", "open", "--pubkey", world.user.pubkey)
    assert told.data["accepted"] is True
    (row,) = world.buzz("dms", "list", as_=world.user).data
    assert row["dm_id"] == told.data["dm_id"]
    assert set(row["participants"]) == {world.agent.pubkey, world.user.pubkey}
