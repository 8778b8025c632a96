"""Quotas per key in fixed windows, as Buzz keeps them; a trial's own relay has none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class Quota(NamedTuple):
    """So many in each window of so many seconds."""

    most: int
    seconds: float


@dataclass(frozen=True)
class Rates:
    """What is limited; null: it is not. Buzz has 300/60, 50/5, and for agents 120/60."""

    api: Quota | None = None
    """Requests over HTTP."""
    frames: Quota | None = None
    """EVENT, REQ and COUNT over WebSockets, together."""
    messages: Quota | None = None
    """Stored messages, whichever way they come."""


NO_RATES = Rates()


@dataclass
class _Window:
    start: float
    used: dict[str, int] = field(default_factory=dict)


class Meter:
    """Counts against one quota."""

    def __init__(self, quota: Quota | None, clock: Callable[[], float]) -> None:
        self._quota = quota
        self._clock = clock
        self._window = _Window(-math.inf)

    def refusal(self, key: str) -> str | None:
        """Counts one more; why it is one too many, or None."""
        if self._quota is None:
            return None
        now = self._clock()
        start = now - now % self._quota.seconds
        if start != self._window.start:
            self._window = _Window(start)
        used = self._window.used[key] = self._window.used.get(key, 0) + 1
        if used <= self._quota.most:
            return None
        left = math.ceil(start + self._quota.seconds - now)
        return f"rate-limited: quota exceeded; retry in {left}s"


class Meters:
    """All that one relay counts."""

    def __init__(self, rates: Rates, clock: Callable[[], float]) -> None:
        self.api = Meter(rates.api, clock)
        self.frames = Meter(rates.frames, clock)
        self.messages = Meter(rates.messages, clock)
