"""What is refused, with which words (wire specification §2.1), in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workers.relay.builders import NOW, World
from workers.nostr.engram import EngramCodec
from workers.nostr.event import Event
from workers.nostr.keys import Keypair

A = "a" * 64


def refusal(world: World, author: Keypair, kind: int, tags: Any = (), content: str = "") -> str:
    answer = world.submit(author, kind, tags, content)
    assert not answer.accepted
    return answer.message


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (22242, "invalid: authentication events are never stored"),
        (44100, "invalid: membership notifications are relay-signed only"),
        (44101, "invalid: membership notifications are relay-signed only"),
        (1059, "invalid: kind 1059 is only accepted via WebSocket"),
        (20001, "invalid: kind 20001 is only accepted via WebSocket"),
        (20002, "invalid: kind 20002 is only accepted via WebSocket"),
        (24200, "invalid: kind 24200 is only accepted via WebSocket"),
        (13534, "restricted: relay-only kind"),
        (30622, "restricted: relay-only kind"),
        (39005, "restricted: relay-only kind"),
        (39006, "restricted: relay-only kind"),
        (40901, "restricted: relay-only kind"),
        (40902, "restricted: relay-only kind"),
        (1, "restricted: unknown event kind"),
        (9009, "restricted: unknown event kind"),
        (39000, "restricted: unknown event kind"),
        (39001, "restricted: unknown event kind"),
        (39002, "restricted: unknown event kind"),
        (40099, "restricted: unknown event kind"),
    ],
)
def test_2_1_kinds_that_clients_may_not_publish(kind: int, reason: str) -> None:
    world = World()
    assert refusal(world, world.user, kind, content="{}") == reason
    assert len(world.state.store) == 0


def test_2_1_an_altered_event_is_refused() -> None:
    world = World()
    event = world.sign(world.user, 0, (), "{}")
    for change in ({"content": "[]"}, {"sig": "0" * 128}, {"pubkey": world.agent.pubkey}):
        altered = Event.from_dict({**event.to_dict(), **change})
        answer = world.core.submit(altered, altered.pubkey, over_http=True)
        assert answer.message == "invalid: event id or signature verification failed"
        assert answer.status == 400


@pytest.mark.parametrize(("moment", "accepted"), [(0, True), (900, True), (901, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_2_1_the_clock_may_be_off_by_900_seconds(moment: int, accepted: bool, sign: int) -> None:
    world = World()
    event = world.sign(world.user, 0, (), "{}", NOW + sign * moment)
    answer = world.core.submit(event, world.user.pubkey, over_http=True)
    assert answer.accepted is accepted
    if not accepted:
        assert answer.message == "invalid: event timestamp too far from server time"


def test_2_1_content_has_at_most_256_kib_of_utf8() -> None:
    world = World()
    channel = world.channel()
    world.message(world.user, channel, "x" * 262_144)
    reason = refusal(world, world.user, 9, [["h", channel]], "é" * 131_073)
    assert reason == "invalid: content exceeds 262144 bytes"


def test_2_1_the_author_is_the_authenticated_key() -> None:
    world = World()
    event = world.sign(world.user, 0, (), "{}")
    answer = world.core.submit(event, world.agent.pubkey, over_http=True)
    assert answer.message == "invalid: event pubkey does not match authenticated identity"
    assert answer.status == 403


def test_2_1_the_signature_is_heard_before_the_clock_and_the_clock_before_the_kind() -> None:
    world = World()
    event = world.sign(world.user, 1, (), "", NOW - 5000)
    forged = Event.from_dict({**event.to_dict(), "content": "x"})
    said = [
        world.core.submit(one, world.user.pubkey, over_http=True).message for one in (forged, event)
    ]
    assert said == [
        "invalid: event id or signature verification failed",
        "invalid: event timestamp too far from server time",
    ]


@pytest.mark.parametrize(
    "kind",
    [9, 40002, 40003, 40007, 40008, 40100, 45001, 45002, 45003, 9000, 9001, 9002, 9005, 9008, 9022],
)
@pytest.mark.parametrize("tags", [[], [["h"]], [["h", ""]], [["h", "not-a-uuid"]]])
def test_2_1_kinds_that_need_a_channel(kind: int, tags: list[list[str]]) -> None:
    world = World()
    reason = refusal(world, world.user, kind, tags)
    assert reason == "invalid: channel-scoped events must include an h tag"


@pytest.mark.parametrize("kind", [9, 40002, 40100, 45001, 48106, 9000, 9001, 9022])
def test_2_1_non_members_write_nothing(kind: int) -> None:
    world = World()
    channel = world.channel(world.agent)
    tags = [["h", channel], ["p", world.other.pubkey]]
    answer = world.submit(world.other, kind, tags)
    assert (answer.message, answer.status) == ("restricted: not a channel member", 400)


def test_2_1_a_channel_that_does_not_exist_reads_like_one_that_is_closed() -> None:
    world = World()
    tags = [["h", "11111111-1111-4111-8111-111111111111"]]
    assert refusal(world, world.user, 9, tags) == "restricted: not a channel member"


def test_2_1_anybody_writes_in_an_open_channel() -> None:
    world = World()
    channel = world.channel(visibility="open")
    world.message(world.other, channel)


def test_2_1_an_archived_channel_takes_nothing() -> None:
    world = World()
    channel = world.channel(world.agent)
    target = world.message(world.user, channel)
    world.accept(world.user, 9002, [["h", channel], ["archived", "true"]])
    for kind, tags in (
        (9, [["h", channel]]),
        (9000, [["h", channel], ["p", A]]),
        (7, [["e", target.id]]),
        (5, [["e", target.id]]),
        (9005, [["h", channel], ["e", target.id]]),
    ):
        assert refusal(world, world.user, kind, tags, "+") == "invalid: channel is archived"
    world.accept(world.user, 9002, [["h", channel], ["archived", "false"]])
    world.message(world.user, channel, "again")


def test_2_1_threads_have_a_parent_in_their_channel() -> None:
    world = World()
    channel, elsewhere = world.channel(), world.channel()
    root = world.message(world.user, channel, "root")
    reply = world.message(world.user, channel, "reply", ["e", root.id, "", "reply"])
    nested = [["e", root.id, "", "root"], ["e", reply.id, "", "reply"]]
    world.message(world.user, channel, "nested", *nested)
    for place, tags, reason in (
        (channel, [["e", A, "", "reply"]], "invalid: reply parent not found"),
        (
            elsewhere,
            [["e", root.id, "", "reply"]],
            "invalid: parent event belongs to a different channel",
        ),
        (
            channel,
            [["e", A, "", "root"], ["e", reply.id, "", "reply"]],
            "invalid: root tag does not match thread ancestry",
        ),
    ):
        assert refusal(world, world.user, 9, [["h", place], *tags]) == reason


def test_2_1_threads_have_a_depth() -> None:
    world = World()
    channel = world.channel()
    root = last = world.message(world.user, channel, "0")
    for depth in range(1, 101):
        marks = [["e", root.id, "", "root"], ["e", last.id, "", "reply"]]
        last = world.message(world.user, channel, str(depth), *marks)
    marks = [["e", root.id, "", "root"], ["e", last.id, "", "reply"]]
    assert refusal(world, world.user, 9, [["h", channel], *marks]) == "invalid: thread is too deep"


@pytest.mark.parametrize("content", ["", "x", "[]", "null", '"x"', "[" * 50_000])
def test_2_5_a_profile_is_a_json_object(content: str) -> None:
    world = World()
    assert refusal(world, world.user, 0, (), content) == "invalid: profile content must be JSON"


def test_2_1_a_reaction_has_a_known_target() -> None:
    world = World()
    assert refusal(world, world.user, 7, [], "+") == (
        "invalid: reaction must reference a target event via e tag"
    )
    assert refusal(world, world.user, 7, [["e", A]], "+") == (
        "invalid: reaction target event not found"
    )


def test_2_9_a_reaction_takes_the_channel_of_its_target() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.user, channel)
    reaction = world.accept(world.agent, 7, [["e", message.id]], "👀")
    assert refusal(world, world.other, 7, [["e", message.id]], "👀") == (
        "restricted: not a channel member"
    )
    assert world.stored(world.user, {"kinds": [7], "#h": [channel]}) == [reaction]
    assert world.stored(world.other, {"kinds": [7]}) == []
    assert refusal(world, world.agent, 7, [["e", message.id]], "x" * 65)
    assert refusal(world, world.agent, 7, [["e", message.id]], "")


def test_2_9_one_reaction_of_a_kind() -> None:
    world = World()
    message = world.message(world.user, world.channel(world.agent))
    first = world.accept(world.agent, 7, [["e", message.id]], "+")
    world.accept(world.agent, 7, [["e", message.id]], "-")
    world.clock.now += 1
    answer = world.submit(world.agent, 7, [["e", message.id]], "+")
    assert (answer.accepted, answer.message, answer.status) == (
        False,
        "duplicate: reaction already exists",
        200,
    )
    world.accept(world.agent, 5, [["e", first.id]])
    world.clock.now += 1
    world.accept(world.agent, 7, [["e", message.id]], "+")


def test_2_9_only_the_author_deletes_with_kind_5() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.agent, channel)
    assert refusal(world, world.user, 5, [["e", message.id]]) == (
        "invalid: only the author may delete an event"
    )
    assert refusal(world, world.user, 5, [])
    world.accept(world.agent, 5, [["e", message.id]])
    assert world.stored(world.user, {"kinds": [9], "#h": [channel]}) == []
    assert message in world.state.store.timeline()


def test_2_9_a_deletion_stays_in_one_channel() -> None:
    world = World()
    closed, own = world.channel(world.agent), world.channel(creator=world.agent)
    hidden, shown = world.message(world.agent, closed), world.message(world.agent, own)
    world.accept(world.user, 9001, [["h", closed], ["p", world.agent.pubkey]])
    both = [["e", hidden.id], ["e", shown.id]]
    assert refusal(world, world.agent, 5, both) == (
        "invalid: deletion targets belong to different channels"
    )


@pytest.mark.parametrize(("kind", "content"), [(0, "{}"), (30315, "x"), (9, "x"), (7, "+")])
def test_2_1_nothing_is_slipped_into_a_closed_channel(kind: int, content: str) -> None:
    world = World()
    closed, public = world.channel(), world.channel(visibility="open")
    target = world.message(world.user, public)
    tags = [["h", public], ["h", closed], ["e", target.id]]
    assert refusal(world, world.other, kind, tags, content) == "restricted: not a channel member"


def test_2_15_a_d_tag_has_at_most_1024_bytes() -> None:
    world = World()
    world.accept(world.user, 30315, [["d", "x" * 1024]])
    assert refusal(world, world.user, 30315, [["d", "é" * 513]]) == (
        "invalid: d tag exceeds 1024 bytes"
    )


def test_2_9_author_or_leader_delete_with_9005() -> None:
    world = World()
    channel = world.channel(world.agent, world.other)
    elsewhere = world.channel()
    one, two = (world.message(world.agent, channel, text) for text in "ab")
    foreign = world.message(world.user, elsewhere)
    metadata = world.metadata(channel)
    for author, tags in (
        (world.other, [["e", one.id]]),
        (world.user, [["e", one.id], ["e", two.id]]),
        (world.user, []),
        (world.user, [["e", A]]),
        (world.user, [["e", foreign.id]]),
        (world.user, [["e", metadata.id]]),
    ):
        assert refusal(world, author, 9005, [["h", channel], *tags]).startswith("invalid: ")
    world.accept(world.agent, 9005, [["h", channel], ["e", one.id]])
    world.accept(world.user, 9005, [["h", channel], ["e", two.id]])
    assert world.stored(world.user, {"kinds": [9], "#h": [channel]}) == []


def test_2_9_a_removed_author_changes_nothing_any_more() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.agent, channel)
    world.accept(world.user, 9001, [["h", channel], ["p", world.agent.pubkey]])
    for kind in (9005, 40003):
        assert refusal(world, world.agent, kind, [["h", channel], ["e", message.id]]) == (
            "restricted: not a channel member"
        )


def test_2_9_only_the_author_edits() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.agent, channel)
    for author, tags in (
        (world.user, [["e", message.id]]),
        (world.agent, []),
        (world.agent, [["e", A]]),
        (world.agent, [["e", message.id], ["e", message.id]]),
    ):
        assert refusal(world, author, 40003, [["h", channel], *tags], "x").startswith("invalid: ")
    world.accept(world.agent, 40003, [["h", channel], ["e", message.id]], "x")


def test_2_14_an_engram_has_its_envelope() -> None:
    world = World()
    codec = EngramCodec(world.agent, agent=world.agent.pubkey, owner=world.owner.pubkey)
    event = codec.seal("mem/x", "value", NOW)
    assert world.core.submit(event, world.agent.pubkey, over_http=True).accepted
    for tags, content in (
        (event.tags[:1], event.content),
        (event.tags[1:], event.content),
        (event.tags, "plain"),
    ):
        assert refusal(world, world.agent, 30174, tags, content).startswith("invalid: engram ")


def test_2_12_a_metric_needs_the_agents_recorded_owner() -> None:
    world = World()
    tags = [["p", world.owner.pubkey], ["agent", world.agent.pubkey]]
    world.accept(world.agent, 44200, tags, "x")
    answer = world.submit(world.owner, 44200, tags, "x")
    assert answer.status == 403
    for wrong in (
        tags[:1],
        tags[1:],
        [*tags, tags[0]],
        [["p", world.user.pubkey], tags[1]],
        [tags[0], ["agent", world.user.pubkey]],
        [*tags, ["h", "x"]],
    ):
        assert refusal(world, world.agent, 44200, wrong, "x").startswith("invalid: ")


def test_2_11_observer_frames_are_between_agent_and_owner() -> None:
    world = World()
    agent = ["agent", world.agent.pubkey]
    up = [["p", world.owner.pubkey], agent]
    down = [["p", world.agent.pubkey], agent]
    assert world.submit(world.agent, 24200, up, over_http=False).accepted
    assert world.submit(world.owner, 24200, down, over_http=False).accepted
    for author, tags in (
        (world.user, up),
        (world.other, down),
        (world.agent, [["p", world.user.pubkey], agent]),
        (world.agent, [agent]),
        (world.agent, up[:1]),
    ):
        assert not world.submit(author, 24200, tags, over_http=False).accepted
    event = world.sign(world.agent, 24200, up, "", NOW - 301)
    assert not world.core.submit(event, world.agent.pubkey, over_http=False).accepted


@pytest.mark.parametrize("content", ["", "{}", '{"channel_add_policy":"x"}', "[]"])
def test_2_2_an_agent_profile_names_a_policy(content: str) -> None:
    world = World()
    assert refusal(world, world.agent, 10100, (), content).startswith("invalid: ")
    world.accept(world.agent, 10100, (), json.dumps({"channel_add_policy": "anyone"}))
