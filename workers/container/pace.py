"""How many containers are started at once, and how fast: the engine is one queue for all.

Measured on two cores, sixteen lives of a container side by side: with four starts at once as many
containers a second come through as with any number, and a command in a running container waits
half as long. So what is in hand is bounded by the cores, and the engine finds its own rate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

STARTS_PER_CORE = 2
"""At once."""


class StartPace:
    """Asked for a turn before each start; whoever asks first starts first."""

    def __init__(
        self,
        at_once: int | None = None,
        per_s: float | None = None,
        burst: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allows so many starts at once, and so many a second.

        Args:
            at_once: null: any number.
            per_s: null: as many as come; else ``burst`` at once after a pause.
            burst: see ``per_s``.
            clock: monotonic seconds.
        """
        self._room = asyncio.Semaphore(at_once) if at_once else None
        self._interval_s = 1.0 / per_s if per_s else 0.0
        self._slack_s = (burst - 1) * self._interval_s
        self._clock = clock
        self._next = clock()

    def reserve(self) -> float:
        """Takes the next turn by the rate; gives the seconds until it comes."""
        now = self._clock()
        at = max(self._next, now - self._slack_s)
        self._next = at + self._interval_s
        return max(0.0, at - now)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn, which lasts as long as the context.

        One that is cancelled while it waits for its time is not given to somebody else.
        """
        wait_s = self.reserve() if self._interval_s else 0.0
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        if self._room is None:
            yield
            return
        async with self._room:
            yield
