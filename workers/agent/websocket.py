"""A blocking WebSocket client over TCP, or TLS over it (RFC 6455).

One thread receives; any thread may send. Pings of the server are answered by ``receive``.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Union
from urllib.parse import urlsplit

from workers.agent import websocket_frames as frames
from workers.agent.addresses import dial_host

if TYPE_CHECKING:
    from workers.agent.tls import TlsSocket

_HEAD_LIMIT = 16 * 1024
_READ_BYTES = 64 * 1024
_PORTS = {"ws": 80, "wss": 443}
Connection = Union[socket.socket, "TlsSocket"]


class LinkError(Exception):
    """The connection could not be made, or is gone; the message says how."""


class ReceiveTimeout(Exception):
    """Nothing arrived in time; the connection is as it was."""


class WebSocket:
    """An open connection."""

    def __init__(self, connection: Connection, decoder: frames.Decoder) -> None:
        self._socket = connection
        self._decoder = decoder
        self._ready: deque[frames.Message] = deque()
        self._sending = threading.Lock()
        self._closing = False
        self.heard_at = time.monotonic()
        """Monotonic time of the last byte that came in."""

    @classmethod
    def connect(cls, url: str, timeout_s: float, max_message_bytes: int) -> WebSocket:
        """Dials a ``ws://`` or ``wss://`` URL and upgrades.

        Raises:
            LinkError: no connection, no upgrade, or not within ``timeout_s`` seconds.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise LinkError(f"{url} is no ws:// or wss:// URL")
        path = parts.path or "/"
        if parts.query:
            path += f"?{parts.query}"
        deadline = time.monotonic() + timeout_s
        try:
            address = (dial_host(parts.hostname), parts.port or _PORTS[parts.scheme])
            plain = socket.create_connection(address, timeout_s)
        except OSError as error:
            raise LinkError(f"no connection to {url}: {error}") from error
        connection: Connection = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme == "wss":
                # Here because it takes time to load, which a trial's own relay does not need.
                from workers.agent.tls import TlsSocket

                connection = TlsSocket(plain, parts.hostname, timeout_s)
            nonce = os.urandom(16)
            connection.sendall(frames.handshake_request(parts.netloc, path, nonce))
            head, rest = _read_head(connection, deadline)
            frames.check_handshake(head, nonce)
            link = cls(connection, frames.Decoder(max_message_bytes))
            link._ready.extend(link._decoder.feed(rest))
        except (OSError, frames.FramingError) as error:
            connection.close()
            raise LinkError(f"no WebSocket at {url}: {error}") from error
        return link

    def receive(self, timeout_s: float) -> str:
        """The next text message.

        Raises:
            ReceiveTimeout: for ``timeout_s`` seconds nothing came in.
            LinkError: the connection ended or broke.
        """
        while True:
            while self._ready:
                text = self._handle(self._ready.popleft())
                if text is not None:
                    return text
            try:
                self._socket.settimeout(timeout_s)
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise LinkError("the relay closed the connection")
                self.heard_at = time.monotonic()
                self._ready.extend(self._decoder.feed(data))
            except socket.timeout as error:
                raise ReceiveTimeout from error
            except frames.FramingError as error:
                self.close(error.code)
                raise LinkError(str(error)) from error
            except OSError as error:
                raise LinkError(f"the connection broke: {error}") from error

    def _handle(self, message: frames.Message) -> str | None:
        if message.opcode == frames.PING:
            self._send(frames.PONG, message.payload)
        elif message.opcode == frames.CLOSE:
            code = int.from_bytes(message.payload[:2], "big") if message.payload else 1005
            self.close(1000)
            raise LinkError(f"the relay closed the connection with code {code}")
        elif message.opcode in (frames.TEXT, frames.BINARY):
            try:
                return message.payload.decode()
            except UnicodeDecodeError as error:
                self.close(1007)
                raise LinkError("a text message is not UTF-8") from error
        return None

    def send(self, text: str) -> None:
        """Sends one text message.

        Raises:
            LinkError: the connection is gone.
        """
        self._send(frames.TEXT, text.encode())

    def ping(self) -> None:
        """Sends a ping; any frame that comes back proves that the peer lives."""
        self._send(frames.PING, b"")

    def _send(self, opcode: int, payload: bytes) -> None:
        frame = frames.encode_frame(opcode, payload, os.urandom(4))
        try:
            with self._sending:
                self._socket.sendall(frame)
        except OSError as error:
            raise LinkError(f"the connection broke: {error}") from error

    def close(self, code: int = 1000) -> None:
        """Says goodbye if it can, and closes; a second call does nothing."""
        if self._closing:
            return
        self._closing = True
        try:
            self._send(frames.CLOSE, frames.close_payload(code))
        except LinkError:
            pass  # Saying goodbye is a courtesy: the peer may be gone.
        finally:
            self._socket.close()


def _read_head(connection: Connection, deadline: float) -> tuple[bytes, bytes]:
    """An HTTP response head, and what came after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or len(data) > _HEAD_LIMIT:
            raise frames.FramingError("no answer to the upgrade")
        connection.settimeout(remaining)
        piece = connection.recv(_READ_BYTES)
        if not piece:
            raise frames.FramingError("the connection ended during the upgrade")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest
