"""Sorts what comes over the link: mentions into the inbox, memberships into subscriptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from workers.agent import journal
from workers.agent.inbox import Inbox
from workers.agent.relay_rules import LOOK_BACK_S, MEMBERSHIP, channel_subscription
from workers.nostr.event import Event
from workers.nostr.tags import first

MEMBER_ADDED = 44100
MEMBER_REMOVED = 44101
_CHANNEL_PREFIX = channel_subscription("")


class Subscribes(Protocol):
    """What changes subscriptions: ``RelayLink``."""

    def subscribe(self, channel: str, since: int) -> None:
        """Adds a channel."""
        ...

    def unsubscribe(self, channel: str) -> None:
        """Drops a channel."""
        ...


class Doorkeeper:
    """Listens on the link's thread.

    Args:
        me: the agent's key.
        allowed: the channels that count; empty: all.
        inbox: where mentions go.
        discover: the channels that the agent is a member of; asked where all are allowed.
    """

    link: Subscribes
    """Set by whoever makes the link, before it runs."""

    def __init__(
        self,
        me: str,
        allowed: Sequence[str],
        inbox: Inbox,
        discover: Callable[[], Iterable[str]],
    ) -> None:
        self._me = me
        self._allowed = allowed
        self._inbox = inbox
        self._discover = discover
        self._started = int(time.time())
        self._newest: dict[str, int] = {}

    def arrived(self, subscription: str, event: Event) -> None:
        """Takes one event; the agent's own are not for it."""
        if subscription == MEMBERSHIP:
            self._membership(event)
        elif event.pubkey != self._me:
            self._inbox.put(subscription[len(_CHANNEL_PREFIX) :], event)

    def live(self, subscription: str) -> None:
        """A subscription is in place: for a channel this is the agent's readiness."""
        if subscription != MEMBERSHIP:
            journal.subscribed(subscription[len(_CHANNEL_PREFIX) :])
            return
        journal.write("subscribed to membership notifications")
        if not self._allowed:
            for channel in self._discover():
                self.link.subscribe(channel, self._started - LOOK_BACK_S)

    def _membership(self, event: Event) -> None:
        """Follows a membership, unless a newer notification of the channel was seen."""
        channel = (first(event.tags, "h") or "").lower()
        if not channel or (self._allowed and channel not in self._allowed):
            return
        if event.created_at < self._newest.get(channel, 0):
            return
        self._newest[channel] = event.created_at
        if event.kind == MEMBER_ADDED:
            self.link.subscribe(channel, event.created_at - LOOK_BACK_S)
        elif event.kind == MEMBER_REMOVED:
            self.link.unsubscribe(channel)
            self._inbox.drop(channel)
