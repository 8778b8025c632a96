"""Signatures (BIP-340), events (NIP-01), HTTP authorisation (NIP-98), and a WebSocket client."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import secrets
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
Point = tuple[int, int] | None


def add(one: Point, other: Point) -> Point:
    """The sum of two points of secp256k1."""
    if one is None or other is None:
        return one or other
    if one[0] == other[0] and (one[1] + other[1]) % P == 0:
        return None
    if one == other:
        slope = 3 * one[0] * one[0] * pow(2 * one[1], -1, P) % P
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, P) % P
    x = (slope * slope - one[0] - other[0]) % P
    return x, (slope * (one[0] - x) - one[1]) % P


def times(factor: int, point: Point) -> Point:
    """A multiple of a point."""
    found: Point = None
    while factor:
        if factor & 1:
            found = add(found, point)
        point = add(point, point)
        factor >>= 1
    return found


def _point(factor: int) -> tuple[int, int]:
    found = times(factor, G)
    assert found is not None
    return found


def _tagged(tag: str, *parts: bytes) -> int:
    head = hashlib.sha256(tag.encode()).digest()
    return int.from_bytes(hashlib.sha256(head + head + b"".join(parts)).digest(), "big")


def pubkey_of(secret: str) -> str:
    """The x-only public key of a secret key, both hex."""
    return f"{_point(int(secret, 16))[0]:064x}"


def sign(secret: str, message: bytes) -> str:
    """A BIP-340 signature, hex."""
    scalar = int(secret, 16)
    x, y = _point(scalar)
    scalar = scalar if y % 2 == 0 else N - scalar
    key = x.to_bytes(32, "big")
    mask = scalar ^ _tagged("BIP0340/aux", secrets.token_bytes(32))
    nonce = _tagged("BIP0340/nonce", mask.to_bytes(32, "big"), key, message) % N
    r, y = _point(nonce)
    nonce = nonce if y % 2 == 0 else N - nonce
    challenge = _tagged("BIP0340/challenge", r.to_bytes(32, "big"), key, message) % N
    return f"{r:064x}{(nonce + challenge * scalar) % N:064x}"


def verifies(pubkey: str, message: bytes, signature: str) -> bool:
    """Whether a BIP-340 signature is the key's over the message."""
    x, r, s = int(pubkey, 16), int(signature[:64], 16), int(signature[64:], 16)
    square = (pow(x, 3, P) + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square or r >= P or s >= N:
        return False
    key = (x, y if y % 2 == 0 else P - y)
    challenge = _tagged("BIP0340/challenge", r.to_bytes(32, "big"), x.to_bytes(32, "big"), message)
    found = add(times(s, G), times(N - challenge % N, key))
    return found is not None and found[1] % 2 == 0 and found[0] == r


def attested(tag: Sequence[str], agent: str) -> bool:
    """Whether an ``auth`` tag is an owner's attestation of an agent's key (NIP-OA)."""
    if len(tag) != 4 or tag[0] != "auth" or tag[1] == agent:
        return False
    preimage = hashlib.sha256(f"nostr:agent-auth:{agent}:{tag[2]}".encode()).digest()
    return verifies(tag[1], preimage, tag[3])


def event(secret: str, kind: int, content: str, tags: Iterable[Sequence[str]]) -> dict[str, Any]:
    """A signed event (NIP-01)."""
    key, now, listed = pubkey_of(secret), int(time.time()), [list(tag) for tag in tags]
    text = json.dumps(
        [0, key, now, kind, listed, content], separators=(",", ":"), ensure_ascii=False
    )
    digest = hashlib.sha256(text.encode()).digest()
    return {
        "id": digest.hex(),
        "pubkey": key,
        "created_at": now,
        "kind": kind,
        "tags": listed,
        "content": content,
        "sig": sign(secret, digest),
    }


class Bridge:
    """The HTTP side of a relay (spec 1.8, 1.9)."""

    def __init__(self, relay_url: str, secret: str, auth_tag: str) -> None:
        self._url = relay_url.replace("ws", "http", 1).rstrip("/")
        self._secret = secret
        self._auth_tag = auth_tag

    def post(self, path: str, document: Any) -> Any:
        """The answer to a signed request; raises ``OSError`` where it is refused."""
        body = json.dumps(document).encode()
        tags = [
            ("u", self._url + path),
            ("method", "POST"),
            ("nonce", secrets.token_hex(16)),
            ("payload", hashlib.sha256(body).hexdigest()),
        ]
        token = json.dumps(event(self._secret, 27235, "", tags)).encode()
        parts = urlsplit(self._url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=10)
        headers = {
            "Authorization": "Nostr " + base64.b64encode(token).decode(),
            "Content-Type": "application/json",
            "x-auth-tag": self._auth_tag,
        }
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status != 200:
            raise OSError(f"relay error {response.status}: {text}")
        return json.loads(text)

    def query(self, *filters: dict[str, Any]) -> list[dict[str, Any]]:
        """Stored events."""
        found: list[dict[str, Any]] = self.post("/query", list(filters))
        return found

    def publish(self, kind: int, content: str, tags: Iterable[Sequence[str]]) -> dict[str, Any]:
        """Signs and stores an event; gives it."""
        made = event(self._secret, kind, content, tags)
        self.post("/events", made)
        return made


class WebSocket:
    """A client's end of one WebSocket (RFC 6455); text only."""

    def __init__(self, url: str, timeout_s: float = 30.0) -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            (
                f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        self._stream = self._socket.makefile("rb")
        status = self._stream.readline()
        if b" 101 " not in status:
            raise OSError(f"no WebSocket: {status!r}")
        while self._stream.readline() not in (b"\r\n", b""):
            pass

    def send(self, message: Any) -> None:
        """Sends a message as JSON."""
        self._frame(1, json.dumps(message).encode())

    def _frame(self, opcode: int, data: bytes) -> None:
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        self._socket.sendall(head + mask + masked)

    def receive(self, timeout_s: float | None) -> Any:
        """The next message; raises ``OSError`` at the end of the connection."""
        self._socket.settimeout(timeout_s)
        text = b""
        while True:
            first, second = self._exactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._exactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._exactly(8))
            data = self._exactly(size)
            opcode = first & 0x0F
            if opcode == 8:
                raise OSError("the relay closed the connection")
            if opcode == 9:
                self._frame(10, data)
            elif opcode in (0, 1):
                text += data
                if first & 0x80:
                    return json.loads(text)

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise OSError("the connection ended")
        return data
