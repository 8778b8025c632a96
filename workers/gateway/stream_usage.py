"""Asks for usage in a chat stream on behalf of a client that did not, and hides the answer.

The request stays as it is to the byte but for ``stream_options.include_usage``. The provider then
sends one chunk more, without choices, which the client must not see. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workers.gateway.usage import END_OF_LINE

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"
_FIELD, _PART = "stream_options", "include_usage"


_END_OF_EVENT = re.compile(rb"\n\r?\n|\r\r")
LONGEST = 256 * 1024
"""Bytes of a usage chunk; an event that is longer is none, and passes as it comes."""


class _Member(NamedTuple):
    """A member of an object: where its value stands in the text."""

    name: str
    start: int
    end: int


def with_usage(body: bytes) -> bytes | None:
    """The body of a streaming chat request, asking for usage; None: it asks already.

    None also where the body is no JSON object in UTF-8, or the field is something else than an
    object: then it is the provider's to refuse.
    """
    try:
        text = body.decode("utf-8")
        start = _after_space(text, 0)
        options = _member(text, start, _FIELD)
        if options is None:
            return _inserted(text, start, f'"{_FIELD}":{{"{_PART}":true}}')
        value = json.loads(text[options.start : options.end])
        if value is None:
            return _replaced(text, options, f'{{"{_PART}":true}}')
        if not isinstance(value, dict) or value.get(_PART) is True:
            return None
        part = _member(text, options.start, _PART)
        if part is None:
            return _inserted(text, options.start, f'"{_PART}":true')
        return _replaced(text, part, "true")
    except (ValueError, IndexError, RecursionError):
        return None


def _member(text: str, brace: int, name: str) -> _Member | None:
    return next((each for each in _members(text, brace) if each.name == name), None)


def _members(text: str, brace: int) -> Iterator[_Member]:
    """The members of the object that begins at ``brace``."""
    if text[brace] != "{":
        raise ValueError("no object")
    place = _after_space(text, brace + 1)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        start = _after_space(text, _after_space(text, place) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield _Member(name, start, end)
        place = _after_space(text, end)
        if text[place] == ",":
            place = _after_space(text, place + 1)


def _after_space(text: str, place: int) -> int:
    while text[place] in _SPACE:
        place += 1
    return place


def _inserted(text: str, brace: int, member: str) -> bytes:
    """With a member put first into the object that begins at ``brace``."""
    comma = "" if text[_after_space(text, brace + 1)] == "}" else ","
    return (text[: brace + 1] + member + comma + text[brace + 1 :]).encode()


def _replaced(text: str, member: _Member, value: str) -> bytes:
    return (text[: member.start] + value + text[member.end :]).encode()


class UsageHider:
    """Takes the usage chunk out of a stream of server-sent events; all else passes as it came."""

    def __init__(self) -> None:
        self._held = b""
        self._is_long = False
        """Whether the beginning of the event that is held has passed already."""

    def feed(self, piece: bytes) -> bytes:
        """The events that are whole by now, without that chunk."""
        # An event's end of up to three bytes may be cut by the piece before.
        seen = max(0, len(self._held) - 3)
        data = self._held + piece
        passed = bytearray()
        start = 0
        while (found := _END_OF_EVENT.search(data, max(start, seen))) is not None:
            event = data[start : found.end()]
            if self._is_long or not _is_usage_only(event):
                passed += event
            self._is_long = False
            start = found.end()
        self._held = data[start:]
        if self._is_long or len(self._held) > LONGEST:
            # What is no usage chunk for certain need not wait, nor be searched again.
            self._is_long = True
            passed += self._held[:-3]
            self._held = self._held[-3:]
        return bytes(passed)

    def flush(self) -> bytes:
        """What is left at the stream's end."""
        held, self._held = self._held, b""
        return b"" if not self._is_long and _is_usage_only(held) else held


def _is_usage_only(event: bytes) -> bool:
    lines = END_OF_LINE.split(event)
    data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
    if b'"usage"' not in data:
        return False
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(chunk, Mapping)
        and chunk.get("choices") == []
        and isinstance(chunk.get("usage"), Mapping)
    )
