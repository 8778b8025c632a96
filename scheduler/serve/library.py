"""What the pages show, read from the store; every method blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from scheduler.lock import Lock, lock_numbers, read_lock
from scheduler.report.attempt import AttemptFiles, read_attempt, read_evidence
from scheduler.report.collect import collect_under
from scheduler.report.names import sweep_start
from scheduler.report.page import report_keys
from scheduler.report.results import SweepResults
from scheduler.report.score import score
from scheduler.report.sides import Side
from scheduler.report.summary import Summary
from scheduler.serve.caching import CachingStore
from scheduler.serve.standing import Standing, standing_of
from workers.contract.agent_logs import ARCHIVE, unpack
from workers.contract.base import FormatError
from workers.contract.evidence import Evidence
from workers.contract.result import try_prefix
from workers.gateway.ledger import LedgerLine
from workers.storage.interface import MissingKeyError, Store, StoreError

T = TypeVar("T")

FRESH_S = 2.0
"""How old a sweep's figures may be: many viewers cost as much as one."""
HELD = 8
"""Sweeps whose figures are held: a large one takes hundreds of megabytes."""

SWEEPS_AT_ONCE = 50
LEDGER = "usage.jsonl"
LOG_BYTES = 64 * 1024
"""Shown of a log, from its end."""


class MissingPageError(Exception):
    """There is no such sweep, attempt, try or file."""


@dataclass(frozen=True)
class SweepRow:
    """A sweep in the list of all."""

    sweep: str
    started_at: str
    tasks: int
    conditions: tuple[str, ...]
    planned: int
    settled: int
    """Attempts with a result, as a listing tells."""
    fault: str = ""
    """Why nothing else can be told of it."""


@dataclass(frozen=True)
class SweepPage:
    """One sweep."""

    results: SweepResults
    summary: Summary
    lock: Lock
    has_report: bool
    standing: Standing | None
    """Null where nothing is open."""


@dataclass(frozen=True)
class LogEnd:
    """The end of a log."""

    name: str
    size: int
    text: str


@dataclass(frozen=True)
class AttemptPage:
    """One attempt and the try that is looked at."""

    found: AttemptFiles
    chosen: str | None
    evidence: Evidence | None
    fault: str
    """Why the evidence cannot be shown."""
    ledger: tuple[LedgerLine, ...]
    unread: int
    """Lines of the ledger that are of no format of this version."""
    logs: tuple[LogEnd, ...]


class Library:
    """The sweeps of a store, as pages need them; safe to be used by several threads."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = CachingStore(store)
        self._sweeps: _Fresh[SweepPage] = _Fresh(clock, HELD)
        self._rows: _Fresh[SweepRow] = _Fresh(clock, 2 * SWEEPS_AT_ONCE)

    @property
    def url(self) -> str:
        """Of the store."""
        return self._store.url

    def names(self) -> list[str]:
        """The ids of all sweeps, the one that started last first."""
        return sorted(self._store.children("sweeps/"), key=sweep_start, reverse=True)

    def rows(self, skip: int = 0) -> list[SweepRow]:
        """``SWEEPS_AT_ONCE`` sweeps of the list of all.

        Raises:
            StoreError: the store refused.
        """
        return [self._row(name) for name in self.names()[skip : skip + SWEEPS_AT_ONCE]]

    def sweep(self, sweep: str) -> SweepPage:
        """A sweep's results and score, ``FRESH_S`` old at most.

        Raises:
            MissingPageError: there is no such sweep.
            FormatError: a record is not of this version's format.
            StoreError: the store refused.
        """
        return self._sweeps.get(sweep, lambda: self._read_sweep(sweep))

    def side(self, sweep: str) -> Side:
        """A sweep as a side of a comparison.

        Raises:
            MissingPageError: there is no such sweep.
            FormatError: a record is not of this version's format.
            StoreError: the store refused.
        """
        page = self.sweep(sweep)
        return Side(page.lock, page.results)

    def attempt(self, sweep: str, attempt: str, try_: str | None) -> AttemptPage:
        """An attempt with the evidence, ledger and logs of one try.

        Raises:
            MissingPageError: there is no such attempt or try.
            FormatError: a record is not of this version's format.
            StoreError: the store refused.
        """
        found = read_attempt(self._store, sweep, attempt)
        if not found.tries:
            raise MissingPageError(f"attempt {attempt} of {sweep} has no try that ended")
        try:
            chosen = found.chosen(try_)
        except KeyError as error:
            raise MissingPageError(f"attempt {attempt} has no try {try_!r}") from error
        if chosen is None:
            return AttemptPage(found, None, None, "", (), 0, ())
        evidence, fault = None, ""
        try:
            evidence = read_evidence(self._store, found, chosen)
        except FormatError as error:
            fault = str(error)
        ledger, unread = self._ledger(found, chosen)
        return AttemptPage(
            found=found,
            chosen=chosen,
            evidence=evidence,
            fault=fault,
            ledger=ledger,
            unread=unread,
            logs=self._logs(found, chosen),
        )

    def file(self, sweep: str, attempt: str, try_: str, name: str) -> bytes:
        """One file of a try, whole, or a log out of the archive of them.

        Raises:
            MissingPageError: there is none.
            FormatError: the archive is none.
            StoreError: the store refused.
        """
        in_archive = name.startswith(f"{ARCHIVE}/")
        key = ARCHIVE if in_archive else name
        try:
            data = self._store.get(f"{try_prefix(sweep, attempt, try_)}/{key}")
            return unpack(data)[name.removeprefix(f"{ARCHIVE}/")] if in_archive else data
        except (MissingKeyError, KeyError) as error:
            raise MissingPageError(f"try {try_} of attempt {attempt} has no {name}") from error

    def report(self, sweep: str) -> bytes:
        """The page that the sweep's last run or ``apiary report`` wrote.

        Raises:
            MissingPageError: there is none.
        """
        try:
            return self._store.get(report_keys(sweep)[0])
        except MissingKeyError as error:
            raise MissingPageError(f"sweep {sweep} has no report yet") from error

    def _row(self, sweep: str) -> SweepRow:
        return self._rows.get(sweep, lambda: self._read_row(sweep))

    def _read_row(self, sweep: str) -> SweepRow:
        try:
            lock = self._lock(sweep)
            keys = list(self._store.keys(f"sweeps/{sweep}/attempts/"))
        except (FormatError, MissingPageError, StoreError) as error:
            # The others are shown nevertheless.
            return SweepRow(sweep, "", 0, (), 0, 0, fault=str(error))
        planned = {each for cell in lock.cells for each in cell.ids(sweep)}
        committed = (key.removesuffix("/result.json").rpartition("/")[2] for key in keys)
        return SweepRow(
            sweep=sweep,
            started_at=lock.started_at,
            tasks=len(lock.tasks),
            conditions=tuple(each.manifest.condition for each in lock.conditions),
            planned=len(planned),
            settled=len(planned.intersection(committed)),
        )

    def _read_sweep(self, sweep: str) -> SweepPage:
        lock = self._lock(sweep)
        results = collect_under(self._store, lock)
        is_open = any(each.open for cell in results.cells for each in cell.attempts)
        return SweepPage(
            results=results,
            summary=score(results),
            lock=lock,
            has_report=self._store.exists(report_keys(sweep)[0]),
            standing=standing_of(self._store, sweep) if is_open else None,
        )

    def _lock(self, sweep: str) -> Lock:
        numbers = lock_numbers(self._store, sweep)
        if not numbers:
            raise MissingPageError(f"there is no sweep {sweep} in this store")
        return read_lock(self._store, sweep, numbers[-1])

    def _ledger(self, found: AttemptFiles, try_: str) -> tuple[tuple[LedgerLine, ...], int]:
        """The lines that can be read, and how many cannot."""
        if LEDGER not in found.files.get(try_, ()):
            return (), 0
        key = f"{try_prefix(found.sweep, found.attempt, try_)}/{LEDGER}"
        lines, unread = [], 0
        for line in filter(None, self._store.get(key).splitlines()):
            try:
                lines.append(LedgerLine.from_json(line, key))
            except FormatError:
                unread += 1
        return tuple(lines), unread

    def _logs(self, found: AttemptFiles, try_: str) -> tuple[LogEnd, ...]:
        logs = []
        for name in found.files.get(try_, ()):
            if name.startswith("logs/") or name.endswith("-error.txt"):
                data = self.file(found.sweep, found.attempt, try_, name)
                logs += [_end_of(*log) for log in _logs_in(name, data)]
        return tuple(logs)


def _logs_in(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """A log, or those of an archive; what is no archive is shown as it is."""
    if name == ARCHIVE:
        with suppress(FormatError):
            yield from ((f"{ARCHIVE}/{log}", text) for log, text in unpack(data).items())
            return
    yield name, data


def _end_of(name: str, data: bytes) -> LogEnd:
    return LogEnd(name, len(data), data[-LOG_BYTES:].decode("utf-8", "replace"))


class _Fresh(Generic[T]):
    """Values that are read again when they are ``FRESH_S`` old; one reader a name at a time.

    The ``most`` that were read last are held.
    """

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._turn = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._values: dict[str, tuple[float, T]] = {}

    def get(self, name: str, read: Callable[[], T]) -> T:
        with self._turn:
            turn = self._turns.setdefault(name, threading.Lock())
        with turn:
            kept = self._values.get(name)
            if kept is not None and self._clock() - kept[0] < FRESH_S:
                return kept[1]
            try:
                value = read()
            except (MissingPageError, FormatError, StoreError):
                with self._turn:
                    self._turns.pop(name, None)
                raise
            with self._turn:
                self._values.pop(name, None)  # so that what was read last stands last
                self._values[name] = (self._clock(), value)
                while len(self._values) > self._most:
                    self._values.pop(next(iter(self._values)))
            return value
