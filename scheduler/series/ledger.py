"""Who does what about a series' due times, kept in the store; blocks.

``create`` is the only lock. A due time's fate is created once, so whatever many schedulers of
many machines decide, one decision holds. A run is driven by whoever created its last claim; if
that one falls silent, the next number is free. The sweep's own driver generations keep a runner
that was only slow from disturbing the one that took its run over.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from scheduler.process import is_gone, this_process
from scheduler.series.planner import RETRY, Held, History, latest_decided
from scheduler.series.records import (
    Cancel,
    Fate,
    Outcome,
    RunBeat,
    RunClaim,
    RunOver,
    Seen,
    Since,
    from_stamp,
    is_stamp,
    read_time,
    run_key,
    runs_prefix,
    stamp,
    written,
)
from scheduler.series.schedule_file import Schedule
from workers.contract.base import Strict
from workers.storage.interface import MissingKeyError, Store

S = TypeVar("S", bound=Strict)

SILENT_S = 30.0
"""Without a beat, until a runner of another machine counts as dead."""

_CLAIM = re.compile(r"claim-([1-9][0-9]{0,8})\.json")


@dataclass
class _Pulse:
    """The last beat that was seen of a claim, and when it moved on our monotonic clock."""

    beat: int
    moved_at: float
    proved: bool = False
    """Whether it was seen to move, so that it lived then for certain."""


class Ledger:
    """One series in the store."""

    def __init__(
        self,
        store: Store,
        schedule: Schedule,
        *,
        wall: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        silent_s: float = SILENT_S,
    ) -> None:
        """``wall`` is the clock by which things are due, ``monotonic`` seconds for waiting."""
        self.store = store
        self.schedule = schedule
        self._wall = wall
        self._monotonic = monotonic
        self._silent_s = silent_s
        self._pulses: dict[tuple[datetime, int], _Pulse] = {}

    @property
    def series(self) -> str:
        """The series' name."""
        return self.schedule.series

    def history(self) -> History:
        """What the store knows of the series; its beginning is written if this is it.

        Raises:
            FormatError: a record is not of this version's format.
            StoreError: the store refused.
        """
        prefix = runs_prefix(self.series)
        names: dict[datetime, set[str]] = {}
        for key in self.store.keys(prefix):
            due, _, name = key[len(prefix) :].partition("/")
            if is_stamp(due):
                names.setdefault(from_stamp(due), set()).add(name)
        decided = frozenset(due for due, files in names.items() if "fate.json" in files)
        latest = latest_decided(decided, self._wall())
        wall = None
        if latest is not None:
            fate = self._fate(latest)
            if fate.zone == self.schedule.file.zone:
                wall = datetime.fromisoformat(fate.wall)
        return History(
            since=self._since(),
            decided=decided,
            last_wall=wall,
            seen=frozenset(due for due, files in names.items() if "seen.json" in files),
            held=self._held(names),
        )

    def decide(self, due: datetime, what: Literal["run", "skipped", "missed"]) -> bool:
        """Settles a due time's fate, unless it has one.

        Returns:
            Whether this call did.
        """
        file = self.schedule.file
        wall = self.schedule.cron.wall(due).isoformat()
        fate = Fate(
            what=what,
            due=written(due),
            wall=wall,
            zone=file.zone,
            at=self._now(),
            host=platform.node(),
        )
        return self._create(due, "fate.json", fate)

    def see(self, due: datetime) -> None:
        """Notes that a due time was seen in time."""
        self._create(due, "seen.json", Seen(at=self._now(), host=platform.node()))

    def ask_to_end(self, due: datetime, why: Literal["deadline", "cancelled"]) -> None:
        """Asks whoever is at work on a run to end it; the first reason counts."""
        self._create(due, "cancel.json", Cancel(why=why, at=self._now(), host=platform.node()))

    def asked_to_end(self, due: datetime) -> Literal["deadline", "cancelled"] | None:
        """Why a run is to end; None: it is not."""
        found = self._read(due, "cancel.json", Cancel)
        return None if found is None else found.why

    def claim(self, due: datetime, number: int) -> bool:
        """Takes a run as the ``number``-th runner of it.

        Returns:
            Whether it is ours; else another was quicker.
        """
        claim = RunClaim(
            number=number, host=platform.node(), at=self._now(), process=this_process()
        )
        return self._create(due, f"claim-{number}.json", claim)

    def is_taken_over(self, due: datetime, number: int) -> bool:
        """Whether somebody else has claimed the run since."""
        return self.store.exists(run_key(self.series, due, f"claim-{number + 1}.json"))

    def beat(
        self,
        due: datetime,
        number: int,
        beat: int,
        left: Literal["", "interrupted", "infrastructure"] = "",
    ) -> None:
        """Says that a runner lives, or that it has left its run."""
        document = RunBeat(beat=beat, left=left, at=self._now())
        self._put(due, f"beat-{number}.json", document)

    def end(
        self, due: datetime, outcome: Outcome, reason: str, claims: int, notices: tuple[str, ...]
    ) -> None:
        """Settles what a run came to; the first word counts."""
        over = RunOver(
            outcome=outcome, reason=reason, claims=claims, at=self._now(), notices=notices
        )
        self._create(due, "end.json", over)

    def is_over(self, due: datetime) -> bool:
        """Whether a run has its end."""
        return self.store.exists(run_key(self.series, due, "end.json"))

    def is_proved(self, due: datetime, claims: int) -> bool:
        """Whether the runner of a held run was seen to live, so that waiting tells no more."""
        pulse = self._pulses.get((due, claims))
        return pulse is not None and pulse.proved

    def _held(self, names: dict[datetime, set[str]]) -> Held | None:
        """The oldest run without an end: more than one is there only for a moment."""
        for due in sorted(names):
            files = names[due]
            if "end.json" in files or "fate.json" not in files:
                continue
            fate = self._fate(due)
            if fate.what != "run":
                continue
            claims = max(map(_number, files), default=0)
            alive, retry_at = self._standing(due, claims)
            return Held(
                due=due,
                began_at=read_time(fate.at),
                claims=claims,
                alive=alive,
                retry_at=retry_at,
                cancel_asked="cancel.json" in files,
            )
        return None

    def _standing(self, due: datetime, claims: int) -> tuple[bool, datetime | None]:
        """(Whether the last runner of a run may be alive, when the next may begin)."""
        claim = self._read(due, f"claim-{claims}.json", RunClaim) if claims else None
        if claim is None:
            # Its fate was settled and nobody claimed it: whoever settled it may be about to.
            return self._moved(due, 0, -1), None
        beat = self._read(due, f"beat-{claims}.json", RunBeat)
        if beat is not None and beat.left:
            left_at = read_time(beat.at)
            # A clock that was ahead when it was left would keep it from being taken up.
            pause = beat.left == "infrastructure" and left_at <= self._wall() + RETRY
            return False, left_at + RETRY if pause else None
        if claim.process and is_gone(claim.process):
            return False, None
        return self._moved(due, claims, -1 if beat is None else beat.beat), None

    def _moved(self, due: datetime, number: int, beat: int) -> bool:
        now = self._monotonic()
        pulse = self._pulses.setdefault((due, number), _Pulse(beat, now))
        if pulse.beat != beat:
            pulse.beat, pulse.moved_at, pulse.proved = beat, now, True
        return now - pulse.moved_at <= self._silent_s

    def _since(self) -> datetime:
        key = f"series/{self.series}/since.json"
        try:
            return read_time(Since.from_json(self.store.get(key), key).at)
        except MissingKeyError:
            begun = Since(at=self._now())
            self.store.create(key, begun.to_json().encode() + b"\n")
            return read_time(Since.from_json(self.store.get(key), key).at)

    def _fate(self, due: datetime) -> Fate:
        key = run_key(self.series, due, "fate.json")
        return Fate.from_json(self.store.get(key), key)

    def _read(self, due: datetime, name: str, kind: type[S]) -> S | None:
        key = run_key(self.series, due, name)
        try:
            return kind.from_json(self.store.get(key), key)
        except MissingKeyError:
            return None

    def _create(self, due: datetime, name: str, document: Strict) -> bool:
        key = run_key(self.series, due, name)
        return self.store.create(key, document.to_json().encode() + b"\n")

    def _put(self, due: datetime, name: str, document: Strict) -> None:
        key = run_key(self.series, due, name)
        self.store.put(key, document.to_json().encode() + b"\n")

    def _now(self) -> str:
        return written(self._wall())


def _number(name: str) -> int:
    """The number of a claim; 0 of anything else that lies beside it."""
    match = _CLAIM.fullmatch(name)
    return 0 if match is None else int(match[1])


def sweep_id(schedule: Schedule, due: datetime) -> str:
    """The sweep of a run: the series' name and the due time."""
    return f"{schedule.series}-{stamp(due)}"
