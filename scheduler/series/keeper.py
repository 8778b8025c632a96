"""While a sweep runs: a thread that says that its runner lives, and looks at what else is due."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from scheduler.series.ledger import Ledger
from scheduler.stop import Stop, StopSignal
from workers.contract.base import FormatError
from workers.storage.interface import StoreError

BEAT_S = 5.0
LOOKS = 4
"""Every so many beats other due times are looked at."""
JOIN_S = 120.0
"""A store call that is under way at the end may take so long."""


class RunStop(StopSignal):
    """Why a run stops: the operator's wish, or that the run itself is to end."""

    def __init__(self, operator: Stop) -> None:
        super().__init__()
        self._operator = operator

    @property
    def draining(self) -> bool:
        """No new leases are given; running trials finish."""
        return super().draining or self._operator.draining

    @property
    def cancelling(self) -> bool:
        """Running trials are ended."""
        return super().cancelling or self._operator.cancelling


class Keeper:
    """Keeps a run that is at work; open it around the work."""

    def __init__(
        self,
        ledger: Ledger,
        due: datetime,
        number: int,
        stop: StopSignal,
        *,
        look: Callable[[], None],
        is_late: Callable[[], bool],
        beat_s: float = BEAT_S,
    ) -> None:
        """For the ``number``-th runner of a run.

        Args:
            ledger: of its series.
            due: of the run.
            number: of the runner's claim.
            stop: asked when the run is to end.
            look: looks at what else is due, and starts nothing.
            is_late: whether the run has passed its deadline.
            beat_s: between two beats.
        """
        self._ledger, self._due, self._number, self._stop = ledger, due, number, stop
        self._look, self._is_late, self._beat_s = look, is_late, beat_s
        self._beats = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="series-keeper", daemon=True)

    def __enter__(self) -> Self:
        self._beat()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        # A beat that is being written could come after the word that the run was left.
        self._thread.join(JOIN_S)

    @property
    def beats(self) -> int:
        """How many there were."""
        return self._beats

    def _keep(self) -> None:
        while not self._ending.wait(self._beat_s):
            self._beat()
            try:
                self._heed()
                if self._beats % LOOKS == 0:
                    self._look()
            except (StoreError, FormatError):
                # The next look is soon; a run does not end because the store stumbles.
                continue

    def _beat(self) -> None:
        self._beats += 1
        try:
            self._ledger.beat(self._due, self._number, self._beats)
        except StoreError:
            # One that is missing is followed by another.
            return

    def _heed(self) -> None:
        if self._is_late():
            self._ledger.ask_to_end(self._due, "deadline")
        if self._ledger.asked_to_end(self._due) is not None and not self._stop.cancelling:
            self._stop.request()
            self._stop.request()


def deadline_of(
    began_at: datetime, deadline: timedelta, now: Callable[[], datetime]
) -> Callable[[], bool]:
    """Whether a run has passed its deadline, asked again and again."""
    return lambda: now() >= began_at + deadline
