"""How fast containers are started: one after another at a bounded rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

STARTS_PER_CORE_S = 1.5
"""What Docker was measured to bear: 3.0 to 3.3 containers a second on two cores."""


class StartPace:
    """A token bucket that is asked before each start; whoever asks first starts first."""

    def __init__(
        self, per_s: float, burst: int = 2, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Allows ``burst`` starts at once after a pause, and ``per_s`` a second from then on."""
        self._interval_s = 1.0 / per_s
        self._slack_s = (burst - 1) * self._interval_s
        self._clock = clock
        self._next = clock()

    def reserve(self) -> float:
        """Takes the next turn; gives the seconds until it comes."""
        now = self._clock()
        at = max(self._next, now - self._slack_s)
        self._next = at + self._interval_s
        return max(0.0, at - now)

    async def turn(self) -> None:
        """Waits for the next turn. One that is cancelled is not given to somebody else."""
        wait_s = self.reserve()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
