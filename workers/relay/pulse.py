"""Whether a WebSocket client is still there: pings that it must answer."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web

MAX_UNANSWERED = 3
"""Pings without an answer after which a client counts as gone (Buzz)."""


class Pulse:
    """Pings one client; cuts the connection of one that is gone.

    A half-open connection looks like an idle one until it is asked.
    """

    def __init__(
        self, socket: web.WebSocketResponse, transport: asyncio.Transport | None, every_s: float
    ) -> None:
        self._socket = socket
        self._transport = transport
        self._every_s = every_s
        self._unanswered = 0

    def heard(self) -> None:
        """Notes a sign of life, of whatever kind."""
        self._unanswered = 0

    async def beat(self) -> None:
        """Pings until the client is gone; cancel it when the connection ends."""
        await asyncio.sleep(self._every_s)
        while self._unanswered < MAX_UNANSWERED:
            self._unanswered += 1
            # A client that reads nothing holds the ping up, which is no answer either.
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(self._every_s):
                    await self._socket.ping()
            await asyncio.sleep(self._every_s)
        if self._transport is not None:
            self._transport.abort()
