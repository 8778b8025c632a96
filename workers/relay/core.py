"""One relay without sockets: its state, and the parts that act on it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable

from workers.nostr.attestation import Attestation
from workers.nostr.event import Event
from workers.relay import kinds
from workers.relay.announcer import Announcer
from workers.relay.answer import Answer, refuse
from workers.relay.commands import Commands
from workers.relay.hub import Hub
from workers.relay.ingest import Ingest
from workers.relay.query import Queries
from workers.relay.rates import Meters
from workers.relay.replay import Refusal, replay
from workers.relay.state import RelayState

Observe = Callable[[int | None, bool], None]
"""Hears the kind of a submitted event, None for one that the relay does not know (a client may
name any), and whether it was accepted."""


def ignore(kind: int | None, is_accepted: bool) -> None:
    """Observes nothing."""


class RelayCore:
    """Takes events and requests of authenticated keys; knows nothing of how they came."""

    def __init__(self, state: RelayState, observe: Observe = ignore) -> None:
        self.state = state
        self._observe = observe
        self.meters = Meters(state.limits.rates, state.clock)
        self.hub = Hub(state.groups)
        self.queries = Queries(state)
        self.announcer = Announcer(state, self.hub)
        self._commands = Commands(state, self.hub, self.announcer)
        self._ingest = Ingest(state, self.hub, self.announcer, self._commands)
        self._last_activity = time.monotonic()
        self._used_auth_ids: dict[str, float] = {}
        self._connected: Counter[str] = Counter()
        self._event_waiters: dict[asyncio.Future[Event], Callable[[Event], bool]] = {}

    def admit(self, pubkey: str, attestation: Attestation | None, *, record: bool) -> bool:
        """Whether an authenticated key may use the relay."""
        return self.state.admit(pubkey, attestation, record=record)

    def submit(self, event: Event, author: str, *, over_http: bool) -> Answer:
        """Takes one event; its effects are visible when this returns."""
        held = len(self.state.store)
        limited = self.meters.messages.refusal(author) if event.kind in kinds.MESSAGES else None
        if limited is not None:
            answer = refuse(limited, 429)
        else:
            answer = self._ingest.submit(event, author, over_http=over_http)
        self._observe(event.kind if event.kind in kinds.KNOWN else None, answer.accepted)
        self.touch()
        if self._event_waiters:
            self._tell_waiters(held)
        return answer

    def restore(self, events: Iterable[Event]) -> list[Refusal]:
        """Takes in what a relay once accepted, in its order; gives what was refused now."""
        refused = replay(
            self.state,
            lambda event: self._ingest.submit(event, event.pubkey, over_http=False),
            events,
        )
        self.refresh()
        return refused

    def refresh(self) -> None:
        """Brings what depends on the clock up to date before a read."""
        self._commands.archive_expired()

    def touch(self) -> None:
        """Notes that a client was heard."""
        self._last_activity = time.monotonic()

    def last_activity(self) -> float:
        """``time.monotonic()`` of the last client message or accepted event."""
        return self._last_activity

    def joined(self, pubkey: str) -> None:
        """Notes that a key has one more interactive connection."""
        self._connected[pubkey] += 1

    def left(self, pubkey: str) -> None:
        """Notes that a key has one less; with the last its presence ends."""
        self._connected[pubkey] -= 1
        if self._connected[pubkey] <= 0:
            del self._connected[pubkey]
            self.state.presence.pop(pubkey, None)

    def claim_auth(self, event_id: str) -> bool:
        """Whether an HTTP authentication is used for the first time; claims it (NIP-98 replay)."""
        now = self.state.clock()
        used = self._used_auth_ids
        # Claims expire in the order they were made, so the dead ones stand in front.
        while used and next(iter(used.values())) <= now:
            del used[next(iter(used))]
        if event_id in used:
            return False
        used[event_id] = now + self.state.limits.replay_s
        return True

    async def wait_event(self, accept: Callable[[Event], bool], timeout_s: float) -> Event | None:
        """The first stored event that is accepted, past or to come, or None in time."""
        for event in self.state.store.timeline():
            if accept(event):
                return event
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._event_waiters[future] = accept
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            return None
        finally:
            del self._event_waiters[future]

    def _tell_waiters(self, held: int) -> None:
        for event in self.state.store.timeline_from(held):
            for future, accept in self._event_waiters.items():
                if not future.done() and accept(event):
                    future.set_result(event)
