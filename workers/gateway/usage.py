"""Reads usage from an answer while its bytes pass by. Pure."""

from __future__ import annotations

import json
from dataclasses import replace

from workers.contract.endpoint import Dialect
from workers.gateway.ledger import CallResult
from workers.gateway.reading import MALFORMED, Reading, read_body, read_event

_DONE = b"[DONE]"


class UsageReader:
    """Takes an answer's bytes in whatever pieces they come."""

    def __init__(self, dialect: Dialect, *, is_stream: bool) -> None:
        """Reads nothing yet; ``is_stream``: the answer is a ``text/event-stream``."""
        self._dialect = dialect
        self._is_stream = is_stream
        self._reading = Reading()
        self._body = bytearray()
        self._event: list[bytes] = []
        self._is_begun = False

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes."""
        self._body += piece
        if self._is_stream and b"\n" in piece:
            self._take_lines()

    def so_far(self) -> Reading:
        """What is known of an answer that broke off."""
        return self._reading

    def close(self) -> Reading:
        """What a whole answer says; its fault is ``provider_malformed`` if it is none."""
        if not self._is_stream:
            return self._read_json()
        self.feed(b"\n\n")
        if self._reading.fault is None and not self._reading.ended:
            return replace(self._reading, fault=CallResult.PROVIDER_MALFORMED)
        return self._reading

    def _read_json(self) -> Reading:
        try:
            document = json.loads(self._body)
        except (ValueError, RecursionError):
            return MALFORMED
        return read_body(self._dialect, document)

    def _take_lines(self) -> None:
        """Server-sent events (WHATWG HTML §9.2): ``data`` lines, ended by an empty line."""
        *lines, rest = bytes(self._body).split(b"\n")
        self._body = bytearray(rest)
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._event.append(line[5:].removeprefix(b" "))
            elif not line and self._event:
                self._take_event(b"\n".join(self._event))
                self._event = []

    def _take_event(self, data: bytes) -> None:
        if data == _DONE:
            # Of a stream that has said nothing it is no end.
            self._reading = replace(self._reading, ended=self._is_begun)
            return
        self._is_begun = True
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            self._reading = replace(self._reading, fault=CallResult.PROVIDER_MALFORMED)
            return
        self._reading = read_event(self._dialect, document, self._reading)
