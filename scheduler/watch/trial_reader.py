"""One attempt, followed live where it runs and shown from its evidence where it has ended. Blocks.

Whoever follows says so in the store every few seconds: only then does the trial's node show it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal, NamedTuple, Self

from scheduler.claim_format import at_work
from scheduler.live_format import LiveRunning, read_live
from scheduler.report.attempt import AttemptFiles, read_attempt, read_evidence
from workers.contract.base import FormatError
from workers.contract.evidence import Evidence
from workers.contract.live import LiveTrial, WatchWish, live_trial_key, watched_key
from workers.contract.result import TryRecord
from workers.storage.interface import MissingKeyError, Store, StoreError

RENEW_S = 3.0
SILENT_S = 15.0
"""Without a new document, until a trial is not shown as running any more."""

Standing = Literal["waiting", "begins", "shown", "ended"]


class Subject(NamedTuple):
    """The attempt that is followed."""

    sweep: str
    attempt: str
    task: str
    condition: str
    place: int
    """Which of its cell's attempts."""


class TrialMoment(NamedTuple):
    """An attempt as it stands."""

    subject: Subject
    standing: Standing
    """``begins``: it runs, and nothing is to be seen yet; ``ended``: its last or counted try."""
    still_s: float = 0.0
    """How long nothing new was seen of what is shown."""
    live: LiveTrial | None = None
    running: LiveRunning | None = None
    record: TryRecord | None = None
    evidence: Evidence | None = None
    is_final: bool = False
    """Whether the attempt has its result."""
    is_driven: bool = True
    """Whether a driver is at work."""
    fault: str = ""
    """Why the store could not be read or asked just now."""


class TrialReader:
    """Follows one attempt; a context manager, which asks to see it as long as it is open."""

    def __init__(
        self, store: Store, subject: Subject, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Reads nothing yet; ``clock`` is monotonic seconds."""
        self._store = store
        self._subject = subject
        self._clock = clock
        self._watcher = secrets.token_hex(8)
        self._beat = 0
        self._asked_at = -RENEW_S
        self._live: LiveTrial | None = None
        self._moved_at = clock()
        self._last: TrialMoment | None = None

    def __enter__(self) -> Self:
        """Asks nothing yet: that comes with the first look."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Takes the wish back, unless it is another's by now."""
        if not self._beat:
            return
        key = watched_key(self._subject.sweep, self._subject.attempt)
        try:
            if WatchWish.from_json(self._store.get(key), key).watcher == self._watcher:
                self._store.delete(key)
        except (StoreError, FormatError):
            return  # It is taken for over when it is not renewed.

    def look(self) -> TrialMoment:
        """How it stands now.

        Raises:
            FormatError: a record is not of this version's format, and was not read before.
            StoreError: the store refused, and never answered before.
        """
        if self._last is not None and self._last.is_final:
            return self._last
        try:
            self._last = self._look()
        except (FormatError, StoreError) as error:
            if self._last is None:
                raise
            still_s = self._clock() - self._moved_at
            return self._last._replace(fault=str(error), still_s=still_s)
        return self._last

    def _look(self) -> TrialMoment:
        fault = self._ask()
        now = self._clock()
        shown = self._read_shown()
        known = self._live
        if shown is not None and (known is None or _version(shown) != _version(known)):
            self._live, self._moved_at = shown, now
        still_s = now - self._moved_at
        if shown is not None and still_s <= SILENT_S:
            return TrialMoment(self._subject, "shown", still_s, live=shown, fault=fault)
        sweep, attempt = self._subject.sweep, self._subject.attempt
        found = read_attempt(self._store, sweep, attempt)
        is_driven = at_work(self._store, sweep) is not None
        if found.result is None and is_driven:
            running = self._running()
            if running is not None:
                return TrialMoment(
                    self._subject, "begins", still_s, live=None, running=running, fault=fault
                )
        if found.result is not None or any(found.tries.values()):
            return self._ended(found, is_driven, fault)
        return TrialMoment(self._subject, "waiting", is_driven=is_driven, fault=fault)

    def _ended(self, found: AttemptFiles, is_driven: bool, fault: str) -> TrialMoment:
        told = [name for name, record in found.tries.items() if record is not None]
        chosen = found.result.try_ if found.result is not None else told[-1]
        evidence = None
        try:
            evidence = read_evidence(self._store, found, chosen)
        except FormatError as error:
            fault = str(error)  # The record stands without it.
        return TrialMoment(
            self._subject,
            "ended",
            record=found.tries[chosen],
            evidence=evidence,
            is_final=found.result is not None,
            is_driven=is_driven,
            fault=fault,
        )

    def _ask(self) -> str:
        """Renews the wish; why that could not be done."""
        now = self._clock()
        if now - self._asked_at < RENEW_S:
            return ""
        self._asked_at = now
        self._beat += 1
        wish = WatchWish(watcher=self._watcher, beat=self._beat)
        key = watched_key(self._subject.sweep, self._subject.attempt)
        try:
            self._store.put(key, wish.to_json().encode() + b"\n")
        except StoreError as error:
            self._asked_at = now - RENEW_S
            return f"following cannot be asked for: {error}"
        return ""

    def _read_shown(self) -> LiveTrial | None:
        key = live_trial_key(self._subject.sweep, self._subject.attempt)
        try:
            return LiveTrial.from_json(self._store.get(key), key)
        except (MissingKeyError, FormatError):
            return None

    def _running(self) -> LiveRunning | None:
        live = read_live(self._store, self._subject.sweep)
        if live is None or live.has_ended:
            return None
        return next((r for r in live.running if r.attempt == self._subject.attempt), None)


def _version(live: LiveTrial) -> tuple[str, int]:
    return live.try_, live.number
