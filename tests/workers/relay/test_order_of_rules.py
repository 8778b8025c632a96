"""Which reason is heard where an event breaks two rules at once (§2.1): the earlier one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.workers.relay.builders import NOW, World
from workers.nostr.event import Event

A = "a" * 64
Case = Callable[[World], Event]


def forged(event: Event) -> Event:
    return Event.from_dict({**event.to_dict(), "sig": "0" * 128})


def archived(world: World) -> str:
    channel = world.channel(world.agent)
    world.accept(world.user, 9002, [["h", channel], ["archived", "true"]])
    return channel


CASES: dict[str, tuple[Case, str]] = {
    "an authentication that is forged": (
        lambda world: forged(world.sign(world.user, 22242)),
        "invalid: authentication events are never stored",
    ),
    "a notification that is forged": (
        lambda world: forged(world.sign(world.user, 44100)),
        "invalid: membership notifications are relay-signed only",
    ),
    "presence over HTTP that is forged": (
        lambda world: forged(world.sign(world.user, 20001)),
        "invalid: kind 20001 is only accepted via WebSocket",
    ),
    "a relay's kind that is forged": (
        lambda world: forged(world.sign(world.user, 40901)),
        "restricted: relay-only kind",
    ),
    "a forged event of long ago": (
        lambda world: forged(world.sign(world.user, 0, (), "{}", NOW - 9999)),
        "invalid: event id or signature verification failed",
    ),
    "a large event of long ago": (
        lambda world: world.sign(world.user, 0, (), "x" * 262_145, NOW - 9999),
        "invalid: event timestamp too far from server time",
    ),
    "a large event of another key": (
        lambda world: world.sign(world.agent, 0, (), "x" * 262_145),
        "invalid: content exceeds 262144 bytes",
    ),
    "another key's event of an unknown kind": (
        lambda world: world.sign(world.agent, 1),
        "invalid: event pubkey does not match authenticated identity",
    ),
    "an unknown kind in a closed channel": (
        lambda world: world.sign(world.user, 1, [["h", world.channel(creator=world.other)]]),
        "restricted: unknown event kind",
    ),
    "a message to a closed channel that is archived": (
        lambda world: world.sign(world.user, 9, [["h", foreign_and_archived(world)]]),
        "restricted: not a channel member",
    ),
    "a reply to nothing in an archived channel": (
        lambda world: world.sign(world.user, 9, [["h", archived(world)], ["e", A, "", "reply"]]),
        "invalid: channel is archived",
    ),
}


def foreign_and_archived(world: World) -> str:
    channel = world.channel(creator=world.other)
    world.accept(world.other, 9002, [["h", channel], ["archived", "true"]])
    return channel


@pytest.mark.parametrize("case", CASES)
def test_2_1_the_earlier_rule_is_heard(case: str) -> None:
    make, reason = CASES[case]
    world = World()
    event = make(world)
    answer = world.core.submit(event, world.user.pubkey, over_http=True)
    assert (answer.accepted, answer.message) == (False, reason)


def test_2_1_a_known_event_is_a_duplicate_before_its_channel_is_looked_at() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.agent, channel)
    world.accept(world.user, 9002, [["h", channel], ["archived", "true"]])
    answer = world.core.submit(message, world.agent.pubkey, over_http=True)
    assert answer.accepted
    assert answer.message.startswith("duplicate:")


def test_2_1_a_gift_wrap_is_signed_by_a_key_of_its_own() -> None:
    world = World()
    wrap = world.sign(world.other, 1059, [["p", world.user.pubkey]], "x")
    assert world.core.submit(wrap, world.agent.pubkey, over_http=False).accepted
    assert world.stored(world.user, {"kinds": [1059], "#p": [world.user.pubkey]}) == [wrap]
    assert world.stored(world.agent, {"ids": [wrap.id]}) == []
