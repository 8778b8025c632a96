"""A sweep's journal, read from the segments that driver and nodes left in the store. Blocks.

Each writer's segments are in order; writers are merged by the time on their lines. One segment of
each writer is held at a time. Clocks of machines differ: lines of two writers stand in the order of
their clocks, which need not be that of what happened.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from workers.contract.base import FormatError
from workers.contract.journal import DRIVER, JournalLine, events_prefix
from workers.storage.interface import MissingKeyError, Store

_SEGMENT = re.compile(r"(?P<source>.+)-(?P<start>[0-9]{8}T[0-9]+Z)-(?P<number>[0-9]{6,})\.jsonl")


_ENDS = ("driver_ended", "driver_failed")


class Segment(NamedTuple):
    """A closed part of one writer's journal."""

    key: str
    source: str
    start: str
    number: int


class Wanted(NamedTuple):
    """Which lines are asked for; empty: all."""

    attempt: str = ""
    """An attempt's id, or its first digits."""
    node: str = ""

    def takes(self, line: JournalLine) -> bool:
        """Whether a line is asked for."""
        if self.attempt and not line.attempt.startswith(self.attempt):
            return False
        return not self.node or self.node in (line.source, line.node)


class JournalReader:
    """Reads a sweep's journal, and then what has been added to it."""

    def __init__(self, store: Store, sweep: str, wanted: Wanted = Wanted()) -> None:  # noqa: B008 - a frozen value
        """Reads nothing yet."""
        self._store = store
        self._sweep = sweep
        self._wanted = wanted
        self._read: dict[tuple[str, str], int] = {}
        """By writer: the number of its next segment."""
        self.unread = 0
        """Lines that are of no format of this version."""

    def lines(self) -> Iterator[JournalLine]:
        """What is there and was not given before, in the order of time.

        Raises:
            StoreError: the store refused.
        """
        writers: dict[tuple[str, str], list[Segment]] = {}
        for segment in self._segments():
            writer = (segment.source, segment.start)
            if segment.number >= self._read.get(writer, 0):
                writers.setdefault(writer, []).append(segment)
        for writer, segments in writers.items():
            segments.sort(key=lambda each: each.number)
            self._read[writer] = segments[-1].number + 1
        streams = [self._lines_of(segments) for segments in writers.values()]
        return heapq.merge(*streams, key=lambda line: line.time)

    def _segments(self) -> Iterator[Segment]:
        prefix = events_prefix(self._sweep)
        for key in self._store.keys(prefix):
            match = _SEGMENT.fullmatch(key.removeprefix(prefix))
            # A node's own lines are of itself; the driver's are of all.
            if match and (not self._wanted.node or match["source"] in (DRIVER, self._wanted.node)):
                yield Segment(key, match["source"], match["start"], int(match["number"]))

    def _lines_of(self, segments: Iterable[Segment]) -> Iterator[JournalLine]:
        for segment in segments:
            try:
                data = self._store.get(segment.key)
            except MissingKeyError:
                continue  # Somebody tidies up.
            for text in data.splitlines():
                try:
                    line = JournalLine.from_json(text, segment.key)
                except FormatError:
                    self.unread += 1
                    continue
                if self._wanted.takes(line):
                    yield line


def driver_end(store: Store, sweep: str, generation: int) -> str:
    """What a driver said last of how it ended; empty: it did not say it. Reads one segment.

    Raises:
        StoreError: the store refused.
    """
    prefix = events_prefix(sweep)
    found = (
        _SEGMENT.fullmatch(key.removeprefix(prefix)) for key in store.keys(f"{prefix}{DRIVER}-")
    )
    ours = [each for each in found if each is not None and each["source"] == DRIVER]
    last = max(ours, key=lambda each: (each["start"], int(each["number"])), default=None)
    if last is None:
        return ""
    key = f"{prefix}{last[0]}"
    try:
        lines = store.get(key).splitlines()
    except MissingKeyError:
        return ""  # Somebody tidies up.
    for text in reversed(lines):
        try:
            line = JournalLine.from_json(text, key)
        except FormatError:
            continue
        if line.event in _ENDS and line.generation == generation:
            return line.text
    return ""


def following(
    reader: JournalReader, is_over: Callable[[], bool], pause: Callable[[], None]
) -> Iterator[JournalLine]:
    """What is there, then what is added until the sweep is over, and the last of it."""
    while True:
        over = is_over()
        yield from reader.lines()
        if over:
            return
        pause()
