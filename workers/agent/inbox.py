"""Mentions that wait to be worked on, by channel; filled by one thread, emptied by another."""

from __future__ import annotations

import threading
from collections import deque

from workers.nostr.event import Event

PENDING_LIMIT = 500
BATCH_LIMIT = 50


class Inbox:
    """Waiting events of all channels. The oldest are dropped where too many wait."""

    def __init__(self) -> None:
        self._channels: dict[str, deque[Event]] = {}
        self._changed = threading.Condition()
        self._closed = False

    def put(self, channel: str, event: Event) -> None:
        """Adds an event and wakes the one who waits."""
        with self._changed:
            waiting = self._channels.setdefault(channel, deque(maxlen=PENDING_LIMIT))
            waiting.append(event)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the waiting: from now on ``next_batch`` gives None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drop(self, channel: str) -> None:
        """Forgets what waits in a channel."""
        with self._changed:
            self._channels.pop(channel, None)

    def next_batch(self, timeout_s: float | None = None) -> tuple[str, list[Event]] | None:
        """Waits for an event, then gives its channel and what waits there, in order of time.

        The channel whose oldest event has waited longest comes first. None: closed, or nothing
        came within ``timeout_s`` seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._channels), timeout_s)
            if self._closed or not self._channels:
                return None
            channel = next(iter(self._channels))
            return channel, self._take(channel)

    def take_more(self, channel: str) -> list[Event]:
        """What came for a channel since its batch was taken; does not wait."""
        with self._changed:
            return self._take(channel) if channel in self._channels else []

    def _take(self, channel: str) -> list[Event]:
        waiting = self._channels.pop(channel)
        batch = [waiting.popleft() for _ in range(min(len(waiting), BATCH_LIMIT))]
        if waiting:
            self._channels[channel] = waiting
        return sorted(batch, key=lambda event: event.created_at)
