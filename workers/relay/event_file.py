"""A file of signed events, one JSON object a line, in order of acceptance."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from workers.nostr import strict_json
from workers.nostr.errors import EventFormatError, JsonError
from workers.nostr.event import Event
from workers.relay.errors import RelayError


class EventFileError(RelayError):
    """A file of events cannot be read or written; the message names the file and the line."""


class EventFile:
    """A relay's memory between two runs. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        """Names a file, which need not be there yet."""
        self._path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self._path.open("a+b")
        except OSError as error:
            raise EventFileError(f"{self._path}: {error.strerror}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> list[Event]:
        """All events of the file.

        What follows the last newline was being written when the writer died: it is cut off.

        Raises:
            EventFileError: a line is no event.
        """
        file = self._opened()
        file.seek(0)
        whole, newline, _ = file.read().rpartition(b"\n")
        file.truncate(len(whole) + len(newline))
        lines = whole.split(b"\n") if newline else []
        return [self._event(number, line) for number, line in enumerate(lines, 1) if line.strip()]

    def append(self, event: Event) -> None:
        """Adds one event; it has left this process when this returns.

        Raises:
            EventFileError: it could not be written.
        """
        file = self._opened()
        try:
            file.write(event.to_json().encode() + b"\n")
            file.flush()
        except OSError as error:
            raise EventFileError(f"{self._path}: {error.strerror}") from error

    def _event(self, number: int, line: bytes) -> Event:
        try:
            return Event.from_dict(strict_json.parse(line))
        except (JsonError, EventFormatError) as error:
            raise EventFileError(f"{self._path}:{number}: no event: {error}") from error

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise EventFileError(f"{self._path}: not open: use it as a context manager")
        return self._file
