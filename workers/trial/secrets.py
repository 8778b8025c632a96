"""The secrets of one trial, kept so that none of them reaches a stored byte.

They live in memory only. An agent may print its own key or post it: the value is struck out of
every file before the file is written, in each of the spellings that a tool might give it.
"""

from __future__ import annotations

import base64
import re

STRUCK_OUT = b"[struck out]"


class Secrets:
    """Values that may not be stored."""

    def __init__(self) -> None:
        self._spellings: set[bytes] = set()
        self._pattern: re.Pattern[bytes] | None = None

    def __repr__(self) -> str:
        """Says how many, never which."""
        return f"Secrets({len(self._spellings)} spellings)"

    def add_key(self, secret_hex: str, nsec: str) -> None:
        """A Nostr secret key: hex in either case, NIP-19, and base64 of its bytes."""
        raw = bytes.fromhex(secret_hex)
        self._add(secret_hex, nsec, base64.b64encode(raw).decode())

    def add_token(self, token: str) -> None:
        """A gateway token."""
        self._add(token, base64.b64encode(token.encode()).decode())

    def add_attestation(self, signature_hex: str) -> None:
        """The signature of an owner's attestation: who holds it may act for the owner."""
        self._add(signature_hex)

    def _add(self, *values: str) -> None:
        self._spellings.update(value.encode().lower() for value in values)
        self._pattern = None

    def strike(self, data: bytes) -> bytes:
        """The data with every secret replaced."""
        if not self.found_in(data):
            return data
        if self._pattern is None:
            # Only now: a directory has many keys, and most trials show none of them.
            longest_first = sorted(self._spellings, key=len, reverse=True)
            self._pattern = re.compile(b"|".join(map(re.escape, longest_first)), re.IGNORECASE)
        return self._pattern.sub(STRUCK_OUT, data)

    def found_in(self, data: bytes) -> bool:
        """Whether the data holds a secret.

        A pattern of many words takes a second for some megabytes, in which the node does nothing
        else; looking for one word after the other takes a fraction of that.
        """
        lowered = data.lower()
        return any(spelling in lowered for spelling in self._spellings)
