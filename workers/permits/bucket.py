"""A token bucket: lets so much pass in a second, and a little at once. Pure.

Source: the algorithm as RFC 2697 §3 has its committed rate. A debt is allowed: what a request
costs may be known only at its end.
"""

from __future__ import annotations

BURST_S = 1.0
"""So many seconds' worth may pass at once, and one request always."""


class Bucket:
    """Open until it is given a rate."""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._level = 0.0
        self._at = 0.0

    @property
    def rate(self) -> float | None:
        """By the second; None: no limit."""
        return self._rate

    def set_rate(self, rate: float | None, now: float) -> None:
        """From now on. A new limit starts with one burst."""
        fresh = self._rate is None
        self._fill(now)
        self._rate = rate
        if rate is not None:
            self._level = self._burst if fresh else min(self._level, self._burst)

    def empty(self, now: float) -> None:
        """What had gathered is void: the provider has refused."""
        self._fill(now)
        self._level = min(self._level, 0.0)

    def wait_s(self, now: float) -> float:
        """How long until the next request may pass; 0: now. Endless at rate 0."""
        if self._rate is None:
            return 0.0
        self._fill(now)
        lacking = 1.0 - self._level
        if lacking <= 1e-9:
            return 0.0
        return lacking / self._rate if self._rate > 0 else float("inf")

    def take(self, amount: float, now: float) -> None:
        """So much passes; negative: less passed than was taken."""
        if self._rate is not None:
            self._fill(now)
            self._level = min(self._level - amount, self._burst)

    @property
    def _burst(self) -> float:
        return max(1.0, (self._rate or 0.0) * BURST_S)

    def _fill(self, now: float) -> None:
        if self._rate is not None:
            self._level = min(self._burst, self._level + self._rate * max(0.0, now - self._at))
        self._at = now
