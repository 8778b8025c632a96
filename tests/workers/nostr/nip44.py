"""NIP-44 v2 encryption with a chosen nonce, from its text: an independent second opinion."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct


def encrypt(key: bytes, nonce: bytes, text: str) -> str:
    """The payload of a text under a conversation key."""
    keys = _expand(key, nonce, 76)
    cipher = _chacha20(keys[:32], keys[32:44], _pad(text.encode()))
    mac = hmac.new(keys[44:], nonce + cipher, hashlib.sha256).digest()
    return base64.b64encode(b"\x02" + nonce + cipher + mac).decode()


def _expand(key: bytes, info: bytes, size: int) -> bytes:
    found, block = b"", b""
    for counter in range(1, size // 32 + 2):
        block = hmac.new(key, block + info + bytes([counter]), hashlib.sha256).digest()
        found += block
    return found[:size]


def _pad(data: bytes) -> bytes:
    size = len(data)
    power = 1 << (size - 1).bit_length() if size > 1 else 1
    chunk = 32 if power <= 256 else power // 8
    padded = 32 if size <= 32 else chunk * ((size - 1) // chunk + 1)
    return struct.pack(">H", size) + data + bytes(padded - size)


def _chacha20(key: bytes, nonce: bytes, data: bytes) -> bytes:
    found = b""
    for start in range(0, len(data), 64):
        block = _block(key, start // 64, nonce)
        part = data[start : start + 64]
        found += bytes(left ^ right for left, right in zip(part, block, strict=False))
    return found


def _block(key: bytes, counter: int, nonce: bytes) -> bytes:
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start += [*struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce)]
    state = list(start)
    for _ in range(10):
        for column in range(4):
            _quarter(state, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            _quarter(
                state,
                column,
                4 + (column + 1) % 4,
                8 + (column + 2) % 4,
                12 + (column + 3) % 4,
            )
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(state, start, strict=True)))


def _quarter(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for left, right, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] = (state[left] + state[right]) & 0xFFFFFFFF
        mixed = state[turned] ^ state[left]
        state[turned] = ((mixed << bits) | (mixed >> (32 - bits))) & 0xFFFFFFFF
