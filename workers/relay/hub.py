"""Live subscriptions: what is accepted reaches every one that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workers.nostr.filters import Filter
from workers.relay import kinds
from workers.relay.groups import Groups
from workers.relay.store import Stored
from workers.relay.visibility import may_see

ACCESS_REVOKED = "restricted: channel access revoked"


@dataclass
class Subscription:
    """One live subscription of one connection."""

    pubkey: str
    filters: tuple[Filter, ...]
    channels: frozenset[str] | None
    """Channel-scoped: those that were readable when it began. None: global, which gets only
    what is stored without a channel."""
    deliver: Callable[[Stored], None]
    revoke: Callable[[str], None]
    """Ends it with a reason."""

    def wants(self, stored: Stored) -> bool:
        """Whether an accepted event belongs here, rights aside."""
        if self.channels is None:
            if stored.channel is not None:
                return False
        elif stored.channel not in self.channels:
            return False
        return any(wanted.matches(stored.event, stored.channel) for wanted in self.filters)

    def wakes_on_mention(self, channel: str) -> bool:
        """Whether a message in a channel that mentions the subscriber would be delivered."""
        return (
            self.channels is not None
            and channel in self.channels
            and any(_takes_mentions(wanted, self.pubkey, channel) for wanted in self.filters)
        )


class Hub:
    """The live subscriptions of one relay, and those who wait for one to begin."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._subscriptions: dict[int, Subscription] = {}
        self._waiters: dict[asyncio.Future[None], Callable[[Subscription], bool]] = {}

    def add(self, subscription: Subscription) -> None:
        """Begins to deliver to a subscription; its EOSE has been sent."""
        self._subscriptions[id(subscription)] = subscription
        for future, accepts in list(self._waiters.items()):
            if not future.done() and accepts(subscription):
                future.set_result(None)

    def remove(self, subscription: Subscription) -> None:
        """Ends deliveries to a subscription."""
        self._subscriptions.pop(id(subscription), None)

    def publish(self, stored: Stored) -> None:
        """Delivers an accepted event; rights are looked at anew for each subscriber."""
        for subscription in list(self._subscriptions.values()):
            if subscription.wants(stored) and may_see(stored, subscription.pubkey, self._groups):
                subscription.deliver(stored)

    def revoke(self, channel: str) -> None:
        """Ends the rights of those who may no longer read a channel."""
        held = self._groups.get(channel)
        for subscription in list(self._subscriptions.values()):
            if subscription.channels is None or channel not in subscription.channels:
                continue
            if held is not None and held.admits(subscription.pubkey):
                continue
            subscription.channels -= {channel}
            if not subscription.channels:
                self.remove(subscription)
                subscription.revoke(ACCESS_REVOKED)

    async def wait(self, accepts: Callable[[Subscription], bool], timeout_s: float) -> bool:
        """Whether there is, or within the time begins, a subscription that is accepted."""
        if any(accepts(subscription) for subscription in self._subscriptions.values()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[future] = accepts
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            return False
        finally:
            del self._waiters[future]
        return True

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._subscriptions.values())


def _takes_mentions(wanted: Filter, pubkey: str, channel: str) -> bool:
    named = wanted.tags.get("p")
    return (
        (wanted.kinds is None or kinds.MESSAGE in wanted.kinds)
        and channel in wanted.tags.get("h", ())
        and (named is None or pubkey in named)
    )
