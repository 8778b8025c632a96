"""Reads usage from an answer while its bytes pass by. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from workers.contract.endpoint import Dialect
from workers.gateway.ledger import CallResult
from workers.gateway.reading import MALFORMED, Reading, read_body, read_event

_DONE = b"[DONE]"
_BOM = b"\xef\xbb\xbf"
END_OF_LINE = re.compile(rb"\r\n|\n|\r")
"""Of server-sent events (WHATWG HTML §9.2)."""


class UsageReader:
    """Takes an answer's bytes in whatever pieces they come."""

    def __init__(self, dialect: Dialect, *, is_stream: bool) -> None:
        """Reads nothing yet; ``is_stream``: the answer is a ``text/event-stream``."""
        self._dialect = dialect
        self._is_stream = is_stream
        self._reading = Reading()
        self._body = bytearray()
        self._event: list[bytes] = []
        self.events = 0
        """Of a stream: how many it has had."""
        self._is_over = False
        self._is_first_line = True

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes."""
        self._body += piece
        if self._is_stream and (b"\n" in piece or b"\r" in piece):
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
        data = bytes(self._body)
        # The end of a line may be cut in two.
        whole = data.removesuffix(b"\r")
        *lines, rest = END_OF_LINE.split(whole)
        self._body = bytearray(rest + data[len(whole) :])
        for line in lines:
            if self._is_first_line:
                self._is_first_line = False
                line = line.removeprefix(_BOM)
            if line.startswith(b"data:"):
                self._event.append(line[5:].removeprefix(b" "))
            elif not line and self._event:
                self._take_event(b"\n".join(self._event))
                self._event = []

    def _take_event(self, data: bytes) -> None:
        if self._is_over or not data:
            # Clients read nothing after the end, and an event without data is none.
            return
        if data.strip() == _DONE:
            # Of a stream that has said nothing it is no end.
            self._reading = replace(self._reading, ended=self.events > 0)
            self._is_over = True
            return
        self.events += 1
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            self._reading = replace(self._reading, fault=CallResult.PROVIDER_MALFORMED)
            return
        self._reading = read_event(self._dialect, document, self._reading)
