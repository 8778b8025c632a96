"""The one exception that a phase lets out, and the clock that bounds a phase."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from workers.contract.outcome import Cause


class PhaseError(Exception):
    """A phase could not do its work; the cause decides blame and retry.

    Attributes:
        cause: why, from the closed list.
        detail: what was attempted, on what, and what to look at.
    """

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail


@asynccontextmanager
async def deadline(clock: str, seconds: float, cause: Cause) -> AsyncIterator[None]:
    """Bounds a block by a named clock.

    Only this clock's own expiry is turned into a ``PhaseError``: a ``TimeoutError`` that
    something inside raises passes through as it is, since on Python 3.11 both have one class.

    Args:
        clock: the name that the error gives, for example ``provision_s``.
        seconds: the bound.
        cause: the cause of the ``PhaseError``.

    Raises:
        PhaseError: the bound was reached; the detail says how long it really ran.
    """
    started = time.monotonic()
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            yield
    except TimeoutError as error:
        if not scope.expired():
            raise
        ran = time.monotonic() - started
        raise PhaseError(
            cause, f"clock {clock} of {seconds:g} s fired after {ran:.1f} s"
        ) from error
