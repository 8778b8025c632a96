"""WebSocket connections: aiohttp's frames around a ``Session`` each."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import WSCloseCode, WSMsgType, web

from workers.relay.core import RelayCore
from workers.relay.outbox import QueueOutbox
from workers.relay.pulse import Pulse
from workers.relay.session import Session

_HARD_FRAME_FACTOR = 4
"""Up to this many times the limit a frame is read, in order to be refused in words."""

_GOODBYE_S = 1.0
"""How long a client may take to answer a close."""


class Connections:
    """The open WebSocket connections of one relay."""

    def __init__(self, core: RelayCore) -> None:
        self._core = core
        self._open: dict[web.WebSocketResponse, asyncio.Transport | None] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def serve(self, request: web.Request, url: str) -> web.WebSocketResponse:
        """Serves one connection to its end.

        Args:
            request: the upgrade.
            url: this relay's address as the client's request names it.
        """
        socket = web.WebSocketResponse(
            autoping=False,  # pongs are counted here
            compress=False,  # as Buzz; and a compressor costs more memory than a connection
            max_msg_size=_HARD_FRAME_FACTOR * self._core.state.limits.frame_bytes,
            timeout=_GOODBYE_S,
        )
        await socket.prepare(request)
        self._open[socket] = request.transport
        try:
            await self._converse(socket, url)
        finally:
            self._open.pop(socket, None)
        return socket

    async def close(self) -> None:
        """Says goodbye to every client (1012); cuts off who does not listen within a second."""
        goodbyes = [asyncio.create_task(_say_goodbye(held)) for held in self._open]
        if goodbyes:
            await asyncio.wait(goodbyes, timeout=_GOODBYE_S)
        for transport in self._open.values():
            if transport is not None:
                transport.abort()
        for goodbye in goodbyes:
            goodbye.cancel()

    async def _converse(self, socket: web.WebSocketResponse, url: str) -> None:
        limits = self._core.state.limits
        transport = self._open[socket]
        outbox = QueueOutbox(limits)
        session = Session(self._core, url, outbox)
        pulse = Pulse(socket, transport, limits.ping_s)
        writer = asyncio.create_task(_write(socket, outbox))
        pinger = asyncio.create_task(pulse.beat())
        deadline = asyncio.get_running_loop().call_later(
            limits.auth_timeout_s, _end_unless_proven, session, outbox
        )
        try:
            session.open()
            await _read(socket, session, outbox, pulse, limits.frame_bytes)
        finally:
            deadline.cancel()
            pinger.cancel()
            session.close()
            outbox.end()
            await asyncio.wait((writer,), timeout=_GOODBYE_S)
            if not writer.done() and transport is not None:
                transport.abort()  # a client that does not read is not waited for
            writer.cancel()


async def _say_goodbye(socket: web.WebSocketResponse) -> None:
    with contextlib.suppress(ConnectionError):  # gone before it could be told
        await socket.close(code=WSCloseCode.SERVICE_RESTART, message=b"relay restarting")


async def _read(
    socket: web.WebSocketResponse,
    session: Session,
    outbox: QueueOutbox,
    pulse: Pulse,
    frame_bytes: int,
) -> None:
    """Feeds the session until the client, the writer or the pulse ends the connection."""
    while True:
        message = await socket.receive()
        pulse.heard()
        if message.type is WSMsgType.PONG:
            continue
        if message.type is WSMsgType.PING:
            with contextlib.suppress(ConnectionError):  # then the next receive tells the end
                await socket.pong(message.data)
            continue
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return
        size = len(message.data if message.type is WSMsgType.BINARY else message.data.encode())
        if size > frame_bytes:
            session.notice(f"error: frame too large ({size} bytes, limit {frame_bytes})")
            return
        session.receive(message.data)
        await outbox.drained()


async def _write(socket: web.WebSocketResponse, outbox: QueueOutbox) -> None:
    """Sends what the outbox holds; closes the connection when that ends."""
    try:
        while (text := await outbox.take()) is not None:
            await socket.send_str(text)
        await socket.close()
    except ConnectionError:
        outbox.end()  # the client is gone; the reader hears of it by itself


def _end_unless_proven(session: Session, outbox: QueueOutbox) -> None:
    """NIP-42 as Buzz has it: who has not proved a key in time is disconnected."""
    if session.pubkey is None:
        outbox.end()
