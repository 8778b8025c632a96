"""Why a sweep is to stop: the operator's wish, as the command line hears it, or a newer driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Stop(Protocol):
    """Somebody's wish that a sweep stops."""

    @property
    def draining(self) -> bool:
        """No new leases are given; running trials finish."""
        ...

    @property
    def cancelling(self) -> bool:
        """Running trials are ended, as the operator's doing."""
        ...


class StopSignal:
    """Counts the requests: the first drains, the second cancels.

    Made for ``loop.add_signal_handler(signal.SIGINT, stop.request)``.
    """

    def __init__(self) -> None:
        self._requests = 0

    def request(self) -> None:
        """Asks to stop, or to stop sooner."""
        self._requests += 1

    @property
    def draining(self) -> bool:
        """No new leases are given; running trials finish."""
        return self._requests > 0

    @property
    def cancelling(self) -> bool:
        """Running trials are ended, as the operator's doing."""
        return self._requests > 1


class AnyStop:
    """Does what the most urgent of several wishes asks for."""

    def __init__(self, *wishes: Stop) -> None:
        self._wishes = wishes

    @property
    def draining(self) -> bool:
        """No new leases are given; running trials finish."""
        return any(each.draining for each in self._wishes)

    @property
    def cancelling(self) -> bool:
        """Running trials are ended."""
        return any(each.cancelling for each in self._wishes)


@dataclass(frozen=True)
class GiveWay:
    """A newer driver runs the sweep: this one is to end."""

    reason: str
    """A sentence that names it."""
    at_once: bool
    """Whether it adopts this driver's nodes with what they run; else that is ended first."""
