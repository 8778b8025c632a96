"""WebSocket framing for a client, without I/O (RFC 6455 §4 and §5).

Bytes go into a ``Decoder``; whole messages and control frames come out. No extension is spoken.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

CONTINUATION = 0x0
TEXT = 0x1
BINARY = 0x2
CLOSE = 0x8
PING = 0x9
PONG = 0xA

_ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FINAL = 0x80
_RESERVED = 0x70
_MASKED = 0x80
_CONTROL_LIMIT = 125


class FramingError(Exception):
    """The peer broke RFC 6455, or sent more than we take; ``code`` is the close code due."""

    def __init__(self, message: str, code: int = 1002) -> None:
        super().__init__(message)
        self.code = code


class Message(NamedTuple):
    """A whole message or a control frame."""

    opcode: int
    """TEXT, BINARY, CLOSE, PING or PONG."""
    payload: bytes


def mask_payload(payload: bytes, mask: bytes) -> bytes:
    """The payload with a four-byte mask laid over it; laying it twice gives it back (§5.3)."""
    size = len(payload)
    if not size:
        return b""
    repeated = (mask * (size // 4 + 1))[:size]
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return mixed.to_bytes(size, "big")


def encode_frame(opcode: int, payload: bytes, mask: bytes) -> bytes:
    """One final frame as a client must send it: masked, with the shortest length (§5.2)."""
    size = len(payload)
    if size <= _CONTROL_LIMIT:
        head = bytes((_FINAL | opcode, _MASKED | size))
    elif size <= 0xFFFF:
        head = bytes((_FINAL | opcode, _MASKED | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FINAL | opcode, _MASKED | 127)) + size.to_bytes(8, "big")
    return head + mask + mask_payload(payload, mask)


def close_payload(code: int, reason: str = "") -> bytes:
    """The body of a close frame (§5.5.1), its reason cut to what a control frame holds."""
    return code.to_bytes(2, "big") + reason.encode()[: _CONTROL_LIMIT - 2]


class Decoder:
    """Turns the bytes of a server into messages.

    Args:
        max_message_bytes: the largest message that is taken, all its fragments together.
    """

    def __init__(self, max_message_bytes: int) -> None:
        self._limit = max_message_bytes
        self._buffer = bytearray()
        self._opcode: int | None = None
        self._fragments = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Takes in bytes as they come and yields what they complete.

        Raises:
            FramingError: these bytes can be no WebSocket traffic of a server, or are too many.
        """
        self._buffer += data
        while True:
            frame = self._next_frame()
            if frame is None:
                return
            message = self._assemble(*frame)
            if message is not None:
                yield message

    def _next_frame(self) -> tuple[bool, int, bytes] | None:
        if len(self._buffer) < 2:
            return None
        first, second = self._buffer[0], self._buffer[1]
        opcode = first & 0x0F
        self._check_head(first, second, opcode)
        size, head = second & 0x7F, 2
        if size >= 126:
            head = 4 if size == 126 else 10
            if len(self._buffer) < head:
                return None
            least = 126 if size == 126 else 0x10000
            size = int.from_bytes(self._buffer[2:head], "big")
            if size < least:
                raise FramingError("a length was not encoded the shortest way")
        if size + (0 if opcode >= CLOSE else len(self._fragments)) > self._limit:
            raise FramingError(f"a message is larger than {self._limit} bytes", code=1009)
        if len(self._buffer) < head + size:
            return None
        payload = bytes(self._buffer[head : head + size])
        del self._buffer[: head + size]
        return bool(first & _FINAL), opcode, payload

    def _check_head(self, first: int, second: int, opcode: int) -> None:
        if first & _RESERVED:
            raise FramingError("a reserved bit is set, though no extension was agreed on")
        if second & _MASKED:
            raise FramingError("a server's frame is masked")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise FramingError(f"unknown opcode {opcode:#x}")
        if opcode >= CLOSE and (not first & _FINAL or second & 0x7F > _CONTROL_LIMIT):
            raise FramingError("a control frame is fragmented or longer than 125 bytes")
        if opcode in (TEXT, BINARY) and self._opcode is not None:
            raise FramingError("a message began inside another one")
        if opcode == CONTINUATION and self._opcode is None:
            raise FramingError("a continuation of nothing")

    def _assemble(self, final: bool, opcode: int, payload: bytes) -> Message | None:
        if opcode >= CLOSE:
            return Message(opcode, payload)
        if opcode != CONTINUATION:
            self._opcode = opcode
        self._fragments += payload
        if not final:
            return None
        whole = Message(self._opcode or TEXT, bytes(self._fragments))
        self._opcode = None
        self._fragments.clear()
        return whole


def handshake_request(host: str, path: str, nonce: bytes) -> bytes:
    """The opening request (§4.1); ``nonce`` are 16 random bytes."""
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(nonce).decode()}",
        "Sec-WebSocket-Version: 13",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def check_handshake(head: bytes, nonce: bytes) -> None:
    """Checks a server's answer, up to and with its empty line (§4.1, §4.2.2).

    Raises:
        FramingError: it did not switch to WebSocket; the message carries its status line.
    """
    status, *fields = head.decode("latin-1").split("\r\n")
    if status.split(" ")[1:2] != ["101"]:
        raise FramingError(f"the upgrade was refused: {status[:200]}")
    headers = {}
    for line in fields:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    digest = hashlib.sha1(base64.b64encode(nonce) + _ACCEPT_SUFFIX, usedforsecurity=False).digest()
    if headers.get("sec-websocket-accept") != base64.b64encode(digest).decode():
        raise FramingError("the server's Sec-WebSocket-Accept does not answer our key")
