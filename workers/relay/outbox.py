"""What one WebSocket client has yet to be sent, bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from workers.nostr import strict_json
from workers.nostr.event import Event
from workers.relay.limits import Limits


@dataclass(frozen=True)
class Delivery:
    """An event for a subscription. Its text is made only when it is sent.

    So a client that asks for much and reads nothing costs references, not copies.
    """

    subscription: str
    event: Event

    def text(self) -> str:
        """The ``EVENT`` message."""
        return strict_json.dump(("EVENT", self.subscription, self.event.to_dict()))


Message = str | Delivery


class Outbox(Protocol):
    """Where a session's messages go."""

    def reply(self, message: Message) -> None:
        """An answer to this client: never dropped."""
        ...

    def push(self, message: Message) -> None:
        """A live event: may be dropped when the client reads too slowly."""
        ...


class QueueOutbox:
    """Messages in order. Answers always fit.

    Live events are dropped while a slow reader's buffer is full; after a few of those the reader
    is disconnected (Buzz).
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[Message] = deque()
        self._ready = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._dropped = 0
        self._has_ended = False

    def reply(self, message: Message) -> None:
        """An answer to this client: never dropped."""
        if self._has_ended:
            return
        self._waiting.append(message)
        self._ready.set()
        if len(self._waiting) >= self._limits.send_buffer:
            self._drained.clear()

    def push(self, message: Message) -> None:
        """A live event: dropped while the buffer is full."""
        if len(self._waiting) >= self._limits.send_buffer:
            self._dropped += 1
            if self._dropped >= self._limits.slow_grace:
                self._waiting.clear()
                self.end()
            return
        self.reply(message)

    def end(self) -> None:
        """Nothing follows what waits now; then the connection is to be closed."""
        self._has_ended = True
        self._ready.set()
        self._drained.set()

    async def take(self) -> str | None:
        """The next message, waiting for one; None where the connection is to be closed."""
        while not self._waiting and not self._has_ended:
            self._ready.clear()
            await self._ready.wait()
        if not self._waiting:
            return None
        message = self._waiting.popleft()
        if len(self._waiting) < self._limits.send_buffer:
            self._drained.set()
        return message if isinstance(message, str) else message.text()

    async def drained(self) -> None:
        """Waits until there is room: a client that does not read is not read from either."""
        await self._drained.wait()
