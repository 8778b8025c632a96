"""The operator's wish to stop a sweep, as the command line hears it."""

from __future__ import annotations


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
