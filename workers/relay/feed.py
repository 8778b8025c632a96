"""A channel's events as they arrive: one live subscription of the harness, kept up.

History has seconds and orders equal ones by id, so the order in which a deployment accepted two
messages of one second is seen here or nowhere.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from workers.nostr.errors import EventFormatError
from workers.nostr.event import Event
from workers.relay import kinds
from workers.relay.core import Observe, ignore
from workers.relay.errors import (
    RelayError,
    RelayRefusedError,
    RelayUnreachableError,
    plain,
)
from workers.relay.interface import Holder
from workers.relay.link import Link, linked
from workers.relay.transport import HINT

SUBSCRIPTION = "trial"
WATCHED = sorted(
    kinds.MESSAGES
    | {kinds.DELETION, kinds.REACTION, kinds.DELETE_EVENT}
    | {kinds.MESSAGE_EDIT, kinds.SYSTEM_MESSAGE}
)
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Before each attempt to connect again, ±20 %."""
STEADY_S = 10.0
"""A connection that was live for as long is a good one: pauses begin anew after it."""
AGAIN_S = 1.0
"""Before a subscription is asked for again that was closed without a time to wait."""


class Feed:
    """What one key sees of one channel."""

    def __init__(
        self,
        url: str,
        gateway: tuple[str, int] | None,
        holder: Holder,
        channel: str,
        observe: Observe = ignore,
    ) -> None:
        """Nothing is connected before ``run``.

        Args:
            url: the relay's canonical address.
            gateway: where to connect in its place.
            holder: a member of the channel.
            channel: its id.
            observe: hears of every event that arrives.
        """
        self._url = url
        self._gateway = gateway
        self._holder = holder
        self._channel = channel
        self._observe = observe
        self._events: dict[str, Event] = {}
        self._waiters: dict[asyncio.Future[Event], Callable[[Event], bool]] = {}
        self._is_live = asyncio.Event()
        self._down_since: float | None = time.monotonic()
        self._up_since: float | None = None
        """When it last became live; null: it never did."""
        self._down_before_s = 0.0
        """Since it was last steady, without the current time."""
        self.trouble = "not connected yet"
        """Why it is not live; empty: it is."""
        self.breaks = 0
        """How often it was live and then was not."""
        self.moved_at = time.monotonic()
        """When an event last arrived, by the monotonic clock."""

    @property
    def down_s(self) -> float:
        """For how long nothing could arrive; 0: it can.

        A connection that did not last is no end of it, else a relay that drops every one would
        never be lost.
        """
        if self._down_since is None:
            return 0.0
        return self._down_before_s + time.monotonic() - self._down_since

    def events(self) -> Sequence[Event]:
        """All so far, in order of arrival."""
        return list(self._events.values())

    async def live(self) -> None:
        """Waits until the stored events are here, and others can arrive."""
        await self._is_live.wait()

    async def wait(self, accept: Callable[[Event], bool], seconds: float) -> Event | None:
        """The first event, past or to come, that is accepted; None if none is in time."""
        for event in self._events.values():
            if accept(event):
                return event
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._waiters[future] = accept
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            del self._waiters[future]

    async def run(self) -> None:
        """Connects and listens, and does so again whenever the connection ends.

        Once it was live, only a key that is not proved any more is an end: what stands before a
        relay that restarts may give any answer for it.

        Raises:
            RelayRefusedError: the relay will not have this key; trying again cannot help.
        """
        failures = 0
        while True:
            try:
                async with linked(self._url, self._gateway, self._holder) as link:
                    await self._listen(link)
            except RelayError as error:
                if _is_final(error, was_live=self._up_since is not None):
                    self._is_down(str(error))
                    raise
                failures = 1 if self._was_steady() else failures + 1
                self._is_down(str(error))
            pause = PAUSES_S[min(failures, len(PAUSES_S)) - 1]
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))

    async def _listen(self, link: Link) -> None:
        await self._ask(link)
        stored: dict[str, Event] | None = {}
        while True:
            match await link.receive():
                case ["EVENT", str(name), data] if name == SUBSCRIPTION:
                    event = _event(data)
                    if event is not None and stored is not None:
                        stored.setdefault(event.id, event)
                    elif event is not None:
                        self._take(event)
                case ["EOSE", str(name)] if name == SUBSCRIPTION and stored is not None:
                    # It came newest first; the order within a second was not seen.
                    missed = list(stored.values())
                    missed.reverse()
                    missed.sort(key=lambda each: each.created_at)
                    for event in missed:
                        self._take(event)
                    stored = None
                    self._is_up()
                case ["CLOSED", str(name), str(words)] if name == SUBSCRIPTION:
                    if words.startswith("auth") and self._up_since is None:
                        raise RelayRefusedError("REQ", 200, words)
                    if words.startswith("auth"):
                        # As buzz-acp does; who is really refused is told so at the next AUTH.
                        raise RelayUnreachableError(f"REQ: {plain(words)}")
                    self._is_down(f"REQ: {plain(words)}")
                    stored = {}
                    await self._ask_again(link, words)
                case ["NOTICE", str(words)] if stored is not None and words.startswith("rate-lim"):
                    await self._ask_again(link, words)
                case ["AUTH", str(challenge)]:
                    await link.prove(challenge)
                case _:
                    pass

    async def _ask(self, link: Link) -> None:
        wanted = {"kinds": WATCHED, "#h": [self._channel]}
        await link.send("REQ", SUBSCRIPTION, wanted)

    async def _ask_again(self, link: Link, words: str) -> None:
        hint = HINT.search(words)
        await asyncio.sleep(AGAIN_S if hint is None else max(float(hint.group(1)), 0.1))
        await self._ask(link)

    def _take(self, event: Event) -> None:
        if event.id in self._events or not event.verify():
            return
        self._events[event.id] = event
        self.moved_at = time.monotonic()
        self._observe(event.kind, True)
        for future, accept in self._waiters.items():
            if not future.done() and accept(event):
                future.set_result(event)

    def _was_steady(self) -> bool:
        if self._down_since is not None or self._up_since is None:
            return False
        return time.monotonic() - self._up_since >= STEADY_S

    def _is_up(self) -> None:
        if self._up_since is not None:
            self._down_before_s = self.down_s
        self._down_since = None
        self._up_since = time.monotonic()
        self.trouble = ""
        self._is_live.set()

    def _is_down(self, why: str) -> None:
        if self._down_since is None:
            if self._was_steady():
                self._down_before_s = 0.0
            self.breaks += 1
            self._down_since = time.monotonic()
        self.trouble = why
        self._is_live.clear()


def _event(data: Any) -> Event | None:
    try:
        event = Event.from_dict(data)
    except EventFormatError:
        return None  # what is no event is no part of the channel
    return event if event.kind in WATCHED else None


def _is_final(error: RelayError, *, was_live: bool) -> bool:
    """Whether the relay refused this key, and not only for now."""
    if not isinstance(error, RelayRefusedError):
        return False
    if error.status == 200:
        return not error.reason.startswith(("error:", "rate-limited:"))
    return not was_live and error.status < 500 and error.status != 429
