"""How many connections one listener holds open."""

from __future__ import annotations

import asyncio

from aiohttp import web


class Door:
    """Makes the protocol of each new connection, up to a number of open ones."""

    def __init__(self, server: web.Server, limit: int) -> None:
        self._server = server
        self._limit = limit

    def __call__(self) -> asyncio.Protocol:
        """The protocol of one more connection."""
        if len(self._server.connections) >= self._limit:
            return Refusal()
        return self._server()


class Refusal(asyncio.Protocol):
    """Ends a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Drops it at once, unsent and unread."""
        if isinstance(transport, asyncio.Transport):
            transport.abort()
