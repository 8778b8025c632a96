"""The journal of a process: structured lines to a log file, and to the store for everybody.

Lines are Python log records of the loggers ``scheduler`` and ``workers`` and of the journal's own.
Only what is said through ``Journal.tell`` goes to the store, in closed segments every few seconds.

*Why a thread and a queue:* neither a slow disk nor a store that hangs may hold up the event loop
whose doings are told. What cannot be written is counted and dropped, oldest first.

*Secrets:* nothing is struck out here, so nothing secret may be said: identifiers, phases, causes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import logging.handlers
import shutil
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Literal, Self, get_args

from workers.contract.journal import DRIVER, JournalLine, Level, segment_key
from workers.storage.interface import Store, StoreError

LogFormat = Literal["json", "text"]
FORMATS: tuple[str, ...] = get_args(LogFormat)

FILE_BYTES = 8 * 1024 * 1024
"""At which a log file is rotated."""
FILES_KEPT = 1
"""Rotated files that stay beside it."""
SWEEPS_KEPT = 20
"""Sweeps whose logs stay in a folder, the latest."""

FLUSH_S = 10.0
FLUSH_BOUND_S = 30.0
"""For one segment; and for the last one, when the journal is closed."""
LAST_BOUND_S = 10.0
LINES_KEPT = 20_000
"""Lines that wait for a store that does not take them."""
SEGMENT_LINES = 5_000
"""At which a segment is written before its time."""
TEXT_MAX = 2000
"""Characters of a line's text."""

PACKAGES = ("scheduler", "workers")
"""Loggers whose records go to the file as well."""

_LEVELS: dict[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class LineFormatter(logging.Formatter):
    """Makes a log record a ``JournalLine``, as JSON or as text."""

    def __init__(self, kind: LogFormat, source: str, sweep: str) -> None:
        super().__init__()
        self._kind = kind
        self._source = source
        self._sweep = sweep

    def format(self, record: logging.LogRecord) -> str:
        """One line without its newline; a traceback becomes part of its text."""
        line = getattr(record, "line", None)
        if not isinstance(line, JournalLine):
            text = record.getMessage()
            if record.exc_info:
                text = f"{text}\n{self.formatException(record.exc_info)}"
            line = JournalLine(
                time=rfc3339(datetime.fromtimestamp(record.created, UTC)),
                level=_level_of(record.levelno),
                source=self._source,
                event="log",
                sweep=self._sweep,
                text=f"{record.name}: {text}"[:TEXT_MAX],
            )
        return line.to_line() if self._kind == "json" else text_of(line)


def text_of(line: JournalLine) -> str:
    """A line as people read it, on one line."""
    about = [line.attempt[:12] + (f" try {line.try_}" if line.try_ else "")] if line.attempt else []
    if line.node and line.node != line.source:
        about.append(f"on {line.node}")
    if line.phase:
        about.append(line.phase)
    source = f"driver {line.generation}" if line.source == DRIVER else line.source
    parts = [line.time, source, line.event, *about]
    if line.level not in ("info", "debug"):
        parts.insert(1, line.level.upper())
    if line.text:
        parts.append(": " + " ".join(line.text.split()))
    return "  ".join(parts).replace("  : ", ": ")


class Journal:
    """What one process of a sweep says; an async context manager."""

    def __init__(
        self,
        store: Store,
        sweep: str,
        source: str,
        *,
        file: Path | None = None,
        kind: LogFormat = "json",
        generation: Callable[[], int] = lambda: 0,
        flush_s: float = FLUSH_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Writes nothing yet.

        Args:
            store: where the sweep is.
            sweep: its id.
            source: ``driver`` or the node's name.
            file: the log file without its ending; null: none is written.
            kind: of the file.
            generation: the driver generation that lines are said under.
            flush_s: between two segments.
            now: the wall clock.
        """
        self._store = store
        self._sweep = sweep
        self._source = source
        self._file = file and file.with_name(f"{file.name}.{'jsonl' if kind == 'json' else 'log'}")
        self._kind = kind
        self._generation = generation
        self._flush_s = flush_s
        self._now = now
        self._start = now().strftime("%Y%m%dT%H%M%S%fZ")
        self._segments = 0
        self._waiting: deque[JournalLine] = deque(maxlen=LINES_KEPT)
        self._closed: list[JournalLine] = []
        """The segment that is to be written: it stays as it is until the store has it."""
        self._dropped = 0
        self.faults = 0
        """Segments that the store did not take."""
        # Not a named logger: two nodes of one process must not hear each other.
        self._log = logging.Logger(f"apiary.{source}", logging.DEBUG)
        self._listener: logging.handlers.QueueListener | None = None
        self._handler: logging.Handler | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._soon = asyncio.Event()
        """Set when a segment is due before its time."""
        self._is_ending = False

    async def __aenter__(self) -> Self:
        """Opens the file and begins to write segments; a file that cannot be had is no fault."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._open(self._file)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._flushing = asyncio.create_task(self._keep_flushing())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Writes the last segment, within bounds, and closes the file."""
        self._is_ending = True
        self._soon.set()
        if self._flushing is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_BOUND_S):
                    await self._flushing
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._listener is not None and self._handler is not None:
            for name in PACKAGES:
                logging.getLogger(name).removeHandler(self._handler)
            await asyncio.to_thread(self._listener.stop)
            for handler in self._listener.handlers:
                handler.close()

    def tell(self, event: str, text: str = "", *, level: Level = "info", **about: Any) -> None:
        """Says that something happened; never waits and never raises for what it writes to.

        ``about`` are further fields of ``JournalLine``.
        """
        line = JournalLine(
            time=rfc3339(self._now()),
            level=level,
            source=self._source,
            event=event,
            sweep=self._sweep,
            generation=self._generation(),
            text=text[:TEXT_MAX],
            **about,
        )
        if len(self._waiting) == LINES_KEPT:
            self._dropped += 1
        self._waiting.append(line)
        if len(self._waiting) == SEGMENT_LINES:
            self._soon.set()
        self._log.log(_LEVELS[level], text, extra={"line": line})

    def _open(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        forget_old(file.parent.parent, keep=file.parent)
        lines: SimpleQueue[logging.LogRecord] = SimpleQueue()
        to_file = _QuietFile(file, lines)
        to_file.setFormatter(LineFormatter(self._kind, self._source, self._sweep))
        self._handler = _Unformatted(lines)
        self._listener = logging.handlers.QueueListener(lines, to_file)
        self._listener.start()
        self._log.addHandler(self._handler)
        for name in PACKAGES:
            logging.getLogger(name).addHandler(self._handler)

    async def _keep_flushing(self) -> None:
        while not self._is_ending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._flush_s):
                    await self._soon.wait()
            if not self._is_ending:
                self._soon.clear()
            await self._flush()
        # What was said while an earlier segment was on its way.
        await self._flush()

    async def _flush(self) -> None:
        """Writes what waits as one closed segment; where that fails, it is written again."""
        if not self._closed:
            self._closed = self._taken()
        if not self._closed or self._pool is None:
            return
        key = segment_key(self._sweep, self._source, self._start, self._segments)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(FLUSH_BOUND_S):
                await loop.run_in_executor(self._pool, _put, self._store, key, self._closed)
        except (StoreError, TimeoutError):
            self.faults += 1
            return
        self._segments += 1
        self._closed = []

    def _taken(self) -> list[JournalLine]:
        """What waits, with a line before it for what had to be dropped."""
        lines = list(self._waiting)
        self._waiting.clear()
        if self._dropped:
            text = f"{self._dropped} lines before this one were dropped: the store took none"
            gap = JournalLine(
                time=lines[0].time,
                level="warning",
                source=self._source,
                event="dropped",
                sweep=self._sweep,
                text=text,
            )
            lines.insert(0, gap)
            self._dropped = 0
        return lines


class _Unformatted(logging.handlers.QueueHandler):
    """Puts records into the queue as they are: the listener's thread makes lines of them."""

    def __init__(self, lines: SimpleQueue[logging.LogRecord]) -> None:
        super().__init__(lines)
        self._lines = lines
        self._dropped = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """The record itself."""
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Drops it where the thread is far behind: it must not fill the memory instead."""
        if self._lines.qsize() >= LINES_KEPT:
            self._dropped += 1
            return
        if self._dropped:
            text = f"{self._dropped} lines before this one were dropped: the disk is too slow"
            gap = {"name": __name__, "levelno": logging.WARNING, "msg": text}
            self._lines.put(logging.makeLogRecord(gap))
            self._dropped = 0
        self._lines.put(record)


class _QuietFile(logging.handlers.RotatingFileHandler):
    """A log file whose faults, a full disk above all, are nobody's outcome.

    A line is formatted once, and is in the file when no other waits behind it: the thread that
    writes shares its core with the event loop whose doings are told.
    """

    def __init__(self, file: Path, lines: SimpleQueue[logging.LogRecord]) -> None:
        super().__init__(file, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")
        self._lines = lines
        self._bytes = file.stat().st_size

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line, into the next file where this one is full."""
        try:
            if self.stream is None:  # it could not be opened again
                self.stream = self._open()
            line = f"{self.format(record)}\n"
            added = len(line.encode())
            if self._bytes + added >= self.maxBytes:
                self.doRollover()
                self._bytes = 0
            assert self.stream is not None  # opened, or that has failed
            self.stream.write(line)
            self._bytes += added
            if self._lines.empty():
                self.flush()
        except (OSError, ValueError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """The line is lost; what it told of goes on."""


def forget_old(logs: Path, keep: Path, count: int = SWEEPS_KEPT) -> None:
    """Removes the logs of all sweeps but the latest; blocks."""
    folders = [each for each in logs.iterdir() if each.is_dir() and each != keep]
    folders.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    for old in folders[count - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


def rfc3339(moment: datetime) -> str:
    """UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level_of(number: int) -> Level:
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"


def _put(store: Store, key: str, lines: list[JournalLine]) -> None:
    store.put(key, "".join(f"{line.to_line()}\n" for line in lines).encode())
