"""Bytes between sockets in a container and a relay that is somewhere else.

Nothing is read into them: TLS goes from the agent to the relay, and so do the names and signatures
that both check.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time

DIAL_S = 10.0
LIMIT = 256
"""Open connections of one listener; a trial has a handful."""
PIECE = 64 * 1024
QUIET_BYTES = 64
"""No message is as small; what only keeps a connection open is."""
_CLOSE_S = 2.0
_log = logging.getLogger(__name__)


class Forwarder:
    """Carries each connection of the listeners that it is given to one address."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self.failed = ""
        """Why the last connection could not be carried on; empty: it could."""
        self.failures = 0
        """How many could not."""
        self.moved_at = time.monotonic()
        """When a message last went by, by the monotonic clock."""

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._carrying)

    @property
    def is_serving(self) -> bool:
        """Whether every socket that it was given still accepts connections."""
        return not self._is_closing and all(each.is_serving() for each in self._servers)

    async def serve(self, listener: socket.socket) -> None:
        """Also serves a listening socket, which is closed by ``close``."""
        self._servers.append(await asyncio.start_server(self._accepted, sock=listener, limit=PIECE))

    async def close(self) -> None:
        """Ends every connection and closes the sockets; bounded, may be repeated."""
        self._is_closing = True
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        carrying = set(self._carrying)
        for each in carrying:
            each.cancel()
        if carrying:
            _, left = await asyncio.wait(carrying, timeout=_CLOSE_S)
            if left:
                _log.warning("%d connections to %s did not end in time", len(left), self._host)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closing or len(self._carrying) >= LIMIT:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in one
        self._carrying.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            if not self._is_closing:
                raise  # else it was ours, and the server's own callback would report it
        finally:
            self._carrying.discard(task)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(DIAL_S):
                onward = await asyncio.open_connection(self._host, self._port, limit=PIECE)
        except (OSError, TimeoutError) as error:
            self.failures += 1
            self.failed = f"{self._host}:{self._port}: {str(error) or 'no connection in time'}"
            return
        self.failed = ""
        back, out = onward
        try:
            _set_nodelay(writer)
            _set_nodelay(out)
            # Either side may be done with speaking while it still listens.
            await asyncio.gather(self._pump(reader, out), self._pump(back, writer))
        finally:
            out.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # a broken connection is an ended one
            while piece := await source.read(PIECE):
                if len(piece) > QUIET_BYTES:
                    self.moved_at = time.monotonic()
                sink.write(piece)
                await sink.drain()
        with contextlib.suppress(OSError, RuntimeError):  # it is closed already
            sink.write_eof()


def _set_nodelay(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
