"""How a driver lets a newer one have the sweep: what runs may finish, then it is ended."""

from __future__ import annotations

from scheduler.stop import GiveWay, StopSignal
from scheduler.view import Observer, SweepEnd


class Handover:
    """One driver's end for another's sake. The time is given."""

    def __init__(self, sweep: str, observer: Observer, *, finish_s: float, cancel_s: float) -> None:
        """Nothing is handed over yet.

        Args:
            sweep: the sweep's id.
            observer: told when it begins.
            finish_s: how long running trials may go on; the newer driver waits for them.
            cancel_s: how long ended trials may take after that.
        """
        self._sweep = sweep
        self._observer = observer
        self._finish_s = finish_s
        self._cancel_s = cancel_s
        self._began_at = 0.0
        self.way: GiveWay | None = None
        """To whom; None while this driver is the last."""
        self.stop = StopSignal()
        """What running trials are asked for."""

    def begin(self, way: GiveWay, held: int, now: float) -> None:
        """A newer driver was found while so many leases were held."""
        self.stop.request()
        self.way, self._began_at = way, now
        if held and not way.at_once:
            self._observer.note(
                f"{way.reason}; {held} running trials may finish for {self._finish_s:g} s"
            )

    def end(self, way: GiveWay, *, busy: bool, now: float) -> SweepEnd | None:
        """The end, once nothing runs any more or the nodes are the newer driver's."""
        waited = now - self._began_at
        if waited > self._finish_s and not self.stop.cancelling:
            self.stop.request()
        if busy and not way.at_once and waited <= self._finish_s + self._cancel_s:
            return None
        return SweepEnd(
            self._sweep,
            "infrastructure",
            way.reason,
            gave_way=True,
            nodes_taken_over=way.at_once,
        )
