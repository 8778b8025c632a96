"""Ingest: idempotent, in order, one current version of what is replaceable (§2.15, §8)."""

from __future__ import annotations

from tests.workers.relay.builders import NOW, World
from workers.nostr.engram import EngramCodec
from workers.relay.ingest import status_of
from workers.relay.limits import Limits


def test_trap_21_the_same_event_again_is_accepted_again() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.user, channel)
    held = len(world.state.store)
    for author, event in ((world.user, message), *((world.user, e) for e in created(world))):
        answer = world.core.submit(event, author.pubkey, over_http=True)
        assert answer.accepted
        assert answer.message.startswith("duplicate:")
    assert len(world.state.store) == held


def created(world: World) -> list:  # type: ignore[type-arg]
    return [e for e in world.state.store.timeline() if e.pubkey == world.user.pubkey]


def test_trap_1_order_is_that_of_acceptance() -> None:
    world = World()
    channel = world.channel(world.agent)
    root = world.message(world.user, channel, "root")
    reply = world.message(world.agent, channel, "reply", ["e", root.id, "", "reply"])
    order = [event.id for event in world.state.store.timeline()]
    assert root.created_at == reply.created_at
    assert order.index(root.id) < order.index(reply.id)


def test_2_15_the_newer_profile_wins_and_the_loser_is_told() -> None:
    world = World()
    new = world.accept(world.user, 0, (), '{"name":"new"}')
    old = world.sign(world.user, 0, (), '{"name":"old"}', NOW - 1)
    answer = world.core.submit(old, world.user.pubkey, over_http=True)
    assert answer.accepted
    assert answer.message.startswith("duplicate:")
    assert world.stored(world.agent, {"kinds": [0]}) == [new]
    assert old not in world.state.store.timeline()


def test_2_15_within_one_second_the_lowest_id_wins() -> None:
    world = World()
    events = [world.sign(world.user, 0, (), f'{{"name":"{n}"}}') for n in range(6)]
    for event in events:
        assert world.core.submit(event, world.user.pubkey, over_http=True).accepted
    winner = min(events, key=lambda event: event.id)
    assert world.stored(world.agent, {"kinds": [0]}) == [winner]


def test_2_15_a_superseded_event_stays_in_the_timeline_and_a_duplicate() -> None:
    world = World()
    first = world.accept(world.user, 0, (), "{}")
    world.clock.now += 1
    world.accept(world.user, 0, (), '{"name":"x"}')
    assert first in world.state.store.timeline()
    answer = world.core.submit(first, world.user.pubkey, over_http=True)
    assert answer.message.startswith("duplicate:")
    assert len(world.stored(world.agent, {"kinds": [0]})) == 1


def test_2_15_an_addressable_event_is_one_per_author_and_d() -> None:
    world = World()
    codec = EngramCodec(world.agent, agent=world.agent.pubkey, owner=world.owner.pubkey)
    for slug, value, moment in (("mem/a", "1", 0), ("mem/b", "2", 0), ("mem/a", "3", 1)):
        event = codec.seal(slug, value, NOW + moment)
        assert world.core.submit(event, world.agent.pubkey, over_http=True).accepted
    found = world.stored(world.agent, {"kinds": [30174], "authors": [world.agent.pubkey]})
    heads = codec.heads(found)
    assert {slug: head.value for slug, head in heads.items()} == {"mem/a": "3", "mem/b": "2"}


def test_1_6_ephemeral_events_are_passed_on_and_never_stored() -> None:
    world = World()
    channel = world.channel(world.agent)
    held = len(world.state.store)
    world.accept(world.agent, 20002, [["h", channel]], over_http=False)
    world.accept(world.agent, 20001, (), "online", over_http=False)
    assert len(world.state.store) == held
    answer = world.submit(world.other, 20002, [["h", channel]], over_http=False)
    assert answer.message == "restricted: not a channel member"


def test_2_10_presence_is_the_status_or_none() -> None:
    world = World()
    world.accept(world.agent, 20001, (), '{"status":"away"}', over_http=False)
    assert world.state.presence == {world.agent.pubkey: "away"}
    world.accept(world.agent, 20001, (), "offline", over_http=False)
    assert world.state.presence == {}
    assert [status_of(text) for text in ("online", "{", "[1]", '{"status":1}')] == [
        "online",
        "{",
        "[1]",
        '{"status":1}',
    ]


def test_2_9_a_deletion_of_something_unknown_is_kept_without_effect() -> None:
    world = World()
    world.accept(world.user, 5, [["e", "a" * 64]])


def test_a_full_relay_refuses_in_words() -> None:
    world = World(limits=Limits(stored_bytes=20_000))
    channel = world.channel()
    world.message(world.user, channel)
    answer = world.submit(world.user, 9, [["h", channel]], "x" * 20_000)
    assert answer.message == "error: relay storage is full"


def test_2_1_accepted_is_stored() -> None:
    world = World()
    channel = world.channel(world.agent)
    for text in "abc":
        event = world.message(world.agent, channel, text)
        assert world.state.store.get(event.id) is not None
