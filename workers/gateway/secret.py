"""Provider keys: read by name, never shown, and taken out of whatever a provider answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workers.gateway.errors import GatewayError


class Secret:
    """A key that no repr, format or log shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, to be put into a request's header and nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"


def read_secret(name: str, environment: Mapping[str, str]) -> Secret | None:
    """The key of variable ``name``, or of the file that ``<name>_FILE`` names; None: neither.

    Raises:
        GatewayError: the file cannot be read, or the key could not stand in a header.
    """
    value = environment.get(name, "")
    file = environment.get(f"{name}_FILE", "")
    if not value and file:
        try:
            value = Path(file).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise GatewayError(f"{name}_FILE names a file that cannot be read") from error
    value = value.strip()
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise GatewayError(f"{name} holds a key with characters that no header may carry")
    return Secret(value)


SHORTEST_KEY = 12
"""Characters. A shorter one is a local server's placeholder, such as ``EMPTY`` or ``x``: it would
be found in ordinary words, and blanking it there would change what the model said."""


def _blanked(secret: Secret | None) -> str:
    """What is to be blanked in what a provider answers; empty for nothing."""
    key = "" if secret is None else secret.reveal()
    return key if len(key) >= SHORTEST_KEY else ""


class Scrubber:
    """Blanks a key in a stream of bytes, same length, wherever the pieces are cut.

    Bytes are held back only while the end of a piece could be the key's beginning.
    """

    def __init__(self, secret: Secret | None) -> None:
        self._key = _blanked(secret).encode()
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What may go on of the stream so far."""
        if not self._key:
            return piece
        data = (self._held + piece).replace(self._key, b"*" * len(self._key))
        held = self._ambiguous(data)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def flush(self) -> bytes:
        """What was held back, at the stream's end."""
        held, self._held = self._held, b""
        return held

    def _ambiguous(self, data: bytes) -> int:
        """The length of the longest end of the data that begins the key."""
        for length in range(min(len(self._key) - 1, len(data)), 0, -1):
            if data.endswith(self._key[:length]):
                return length
        return 0


def scrub(text: str, secret: Secret | None) -> str:
    """A short text without the key."""
    key = _blanked(secret)
    return text.replace(key, "***") if key else text
