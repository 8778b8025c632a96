"""Provider keys: read by name, never shown, and taken out of whatever a provider answers."""

from __future__ import annotations

import base64
import functools
import html
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from workers.gateway.errors import GatewayError

LONGEST_FILE = 64 * 1024
"""Bytes of a key's file, more than any header may have."""


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
    value = environment.get(name, "").strip()
    file = environment.get(f"{name}_FILE", "")
    if not value and file:
        try:
            value = _content(file).decode("utf-8").strip()
        except (OSError, ValueError) as error:
            raise GatewayError(f"{name}_FILE names a file that cannot be read") from error
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise GatewayError(f"{name} holds a key with characters that no header may carry")
    return Secret(value)


def _content(file: str) -> bytes:
    """What a key's file holds: a pipe would stop the node's loop, and a large file fill it.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or too large for a key.
    """
    # Not to wait for the other end of a pipe, before it is known that it is one.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        content = stream.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise ValueError(f"it has more than {LONGEST_FILE} bytes")
    return content


class SecretSource:
    """Where a key comes from; a file is read again when it has changed, so that keys rotate.

    While a changed file cannot be read, or holds no key, the last key goes on: a secret mount is
    swapped in steps, and a provider refuses what is really over.
    """

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        """Reads it for the first time.

        Raises:
            GatewayError: as ``read_secret``.
        """
        self.name = name
        self._environment = environment
        said = environment.get(name, "").strip()
        self._file = "" if said else environment.get(f"{name}_FILE", "")
        self._seen = self._mark()
        self._secret = read_secret(name, environment)

    def current(self) -> Secret | None:
        """The key as it is now; None: there was never one."""
        mark = self._mark()
        if mark != self._seen:
            try:
                self._secret = read_secret(self.name, self._environment) or self._secret
            except GatewayError:
                return self._secret
            self._seen = mark
        return self._secret

    def _mark(self) -> tuple[int, ...] | None:
        """What changes with the file; a link is followed, since mounts swap links."""
        if not self._file:
            return None
        try:
            state = os.stat(self._file)
        except (OSError, ValueError):
            return ()
        return (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)


_LARGE_HEX = re.compile("%[0-9A-F]{2}")
_JSON_ESCAPES = (("&<>", "\\u{:04x}"), ("&<>='", "\\u{:04x}"), ("&'+<>`", "\\u{:04X}"))
"""What writers of JSON escape without need: those of Go, of Java's Gson and of .NET."""

SHORTEST_KEY = 12
"""Characters. A shorter one is a local server's placeholder, such as ``EMPTY`` or ``x``: it would
be found in ordinary words, and blanking it there would change what the model said."""


def _blanked(secrets: Sequence[Secret]) -> tuple[str, ...]:
    """What is to be blanked in what a provider answers.

    Keys as they are, and as writers of JSON, URLs, HTML and base64 spell them.
    """
    values = (secret.reveal() for secret in secrets)
    spelled = (_spellings(value) for value in values if len(value) >= SHORTEST_KEY)
    return tuple(dict.fromkeys(each for some in spelled for each in some))


@functools.lru_cache(maxsize=64)
def _spellings(key: str) -> tuple[str, ...]:
    quoted = [quote(key, safe=kept) for kept in ("", "/")]
    in_json = json.dumps(key)[1:-1]
    return (
        key,
        *quoted,
        *(_LARGE_HEX.sub(lambda found: found[0].lower(), each) for each in quoted),
        in_json,
        in_json.replace("/", "\\/"),
        *(_escaped(in_json, chars, form) for chars, form in _JSON_ESCAPES),
        html.escape(key),
        *_inside_base64(key.encode()),
    )


def _escaped(key: str, chars: str, form: str) -> str:
    for char in chars:
        key = key.replace(char, form.format(ord(char)))
    return key


def _inside_base64(key: bytes) -> Iterator[str]:
    """The part of a longer text's base64 that depends on the key alone, wherever it stands."""
    for before, spoilt in enumerate((0, 2, 3)):
        whole = base64.b64encode(bytes(before) + key + bytes(2)).decode()
        part = whole[spoilt : (before + len(key)) * 8 // 6]
        yield part
        yield part.replace("+", "-").replace("/", "_")


class Scrubber:
    """Blanks keys in a stream of bytes, same length, wherever the pieces are cut.

    Bytes are held back only while the end of a piece could be a key's beginning.
    """

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._keys = tuple(value.encode() for value in _blanked(secrets))
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What may go on of the stream so far."""
        if not self._keys:
            return piece
        data = self._held + piece
        for key in self._keys:
            data = data.replace(key, b"*" * len(key))
        held = max(_ambiguous(data, key) for key in self._keys)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def flush(self) -> bytes:
        """What was held back, at the stream's end."""
        held, self._held = self._held, b""
        return held


def _ambiguous(data: bytes, key: bytes) -> int:
    """The length of the longest end of the data that begins the key."""
    start = max(0, len(data) - len(key) + 1)
    while (start := data.find(key[:1], start)) >= 0:
        if key.startswith(data[start:]):
            return len(data) - start
        start += 1
    return 0


def scrub(text: str, secrets: Sequence[Secret]) -> str:
    """A short text without the keys."""
    for key in _blanked(secrets):
        text = text.replace(key, "***")
    return text
