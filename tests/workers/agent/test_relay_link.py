from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.workers.agent.worlds import WAIT_S, World
from workers.agent.identity import Identity
from workers.agent.relay_link import RelayLink, RelayRefused
from workers.agent.relay_rules import (
    MEMBERSHIP,
    Reaction,
    Seen,
    channel_subscription,
    reaction,
)
from workers.agent.websocket import LinkError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair


class Log:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.events: list[tuple[str, Event]] = []
        self.lives: list[str] = []

    def arrived(self, subscription: str, event: Event) -> None:
        with self._changed:
            self.events.append((subscription, event))
            self._changed.notify_all()

    def live(self, subscription: str) -> None:
        with self._changed:
            self.lives.append(subscription)
            self._changed.notify_all()

    def wait_live(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(names) <= set(self.lives), WAIT_S)

    def wait_events(self, count: int, name: str) -> list[Event]:
        def found() -> list[Event]:
            return [event for subscription, event in self.events if subscription == name]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, WAIT_S)
            return found()


@contextmanager
def linked(world: World, *channels: str) -> Iterator[tuple[RelayLink, Log]]:
    """The world's agent on a link; the thread ends with the relay's connection."""
    log = Log()
    stop = threading.Event()

    def sleep(seconds: float) -> None:
        if stop.wait(min(seconds, 0.01)):
            raise LinkError("the test is over")

    link = RelayLink(
        f"ws://{world.host}", world.agent.identity(), channels, time.time(), log, sleep
    )

    def body() -> None:
        try:
            link.run()
        except LinkError:
            assert stop.is_set()

    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield link, log
    finally:
        stop.set()
        world.run(world.relay.close())
        thread.join(WAIT_S)
        assert not thread.is_alive()


def mention(world: World, text: str) -> Event:
    return world.run(
        world.user.client.send_message(world.channel, text, mentions=[world.agent.pubkey])
    )


def test_stored_and_new_mentions_arrive_once(world: World) -> None:
    before = mention(world, "before")
    name = channel_subscription(world.channel)
    with linked(world, world.channel) as (_, log):
        log.wait_live(MEMBERSHIP, name)
        world.run(world.user.client.send_message(world.channel, "not for the agent"))
        after = mention(world, "after")
        assert log.wait_events(2, name) == [before, after]
        (joined,) = log.wait_events(1, MEMBERSHIP)
        assert joined.kind == 44100


def test_a_channel_can_be_added_and_dropped(world: World) -> None:
    name = channel_subscription(world.channel)
    with linked(world) as (link, log):
        log.wait_live(MEMBERSHIP)
        link.subscribe(world.channel, 0)
        link.subscribe(world.channel, 0)
        log.wait_live(name)
        first = mention(world, "first")
        assert log.wait_events(1, name) == [first]
        link.unsubscribe(world.channel)
        link.unsubscribe(world.channel)
        link.subscribe(world.channel, int(time.time()) - 5)
        second = mention(world, "second")
        assert log.wait_events(2, name) == [first, second]


def test_a_lost_connection_is_made_again_without_a_gap(world: World) -> None:
    name = channel_subscription(world.channel)
    with linked(world, world.channel) as (link, log):
        log.wait_live(name)
        first = mention(world, "first")
        log.wait_events(1, name)
        wire = link._link
        assert wire is not None
        wire._socket.shutdown(2)
        second = mention(world, "second")
        assert log.wait_events(2, name) == [first, second]


def test_a_key_that_is_not_admitted_ends_the_link(world: World) -> None:
    stranger = Identity(Keypair.generate(), None)
    link = RelayLink(f"ws://{world.host}", stranger, (), time.time(), Log())
    with pytest.raises(RelayRefused, match="not a relay member"):
        link.run()


def test_the_first_connection_waits_for_the_listener(world: World) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            link._url = f"ws://{world.host}"

    stranger = Identity(Keypair.generate(), None)
    link = RelayLink("ws://127.0.0.1:1", stranger, (), time.time(), Log(), sleep)
    with pytest.raises(RelayRefused):
        link.run()
    assert waits == [0.005] * 3


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("restricted: not a channel member", Reaction.FORGET),
        ("restricted: channel access revoked", Reaction.FORGET),
        ("rate-limited: quota exceeded; retry in 3s", Reaction.BACK_OFF),
        ("auth-required: not authenticated", Reaction.RECONNECT),
        ("restricted: something else", Reaction.RECONNECT),
        ("error: database error", Reaction.RESUBSCRIBE),
        ("", Reaction.RESUBSCRIBE),
    ],
)
def test_what_a_closed_subscription_asks_for(reason: str, expected: Reaction) -> None:
    assert reaction(reason) is expected


def test_only_the_newest_ids_are_remembered() -> None:
    seen = Seen(capacity=2)
    assert [seen.is_new(text) for text in "aabcab"] == [True, False, True, True, True, True]
    assert not seen.is_new("b")
