"""The one exception that a phase lets out, its causes, and the clock that bounds a phase."""

from __future__ import annotations

import asyncio
import errno
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.contract.outcome import Cause
from workers.relay import RelayError, RelayRefusedError, RelayUnreachableError
from workers.storage.interface import ClockSkewError, StoreError

NOT_THERE = frozenset({502, 503, 504})
"""Answers of what stands before a relay, or of one that starts, ends or lost its own parts."""
DISK_LEFT_BYTES = 256 * 1024
"""With less than this nobody can write a log, and soon nobody evidence."""


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


def is_disk_full(error: BaseException | None) -> bool:
    """Whether a fault, or what it came from, is a disk or a quota without room."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def check_room(folder: Path) -> None:
    """Looks whether the disk of a folder has room for what a trial writes next.

    Raises:
        PhaseError: ``disk_full``.
    """
    free = shutil.disk_usage(folder).free
    if free < DISK_LEFT_BYTES:
        raise PhaseError(Cause.DISK_FULL, f"the node's disk has {free} bytes left")


def cause_of_store(error: StoreError) -> Cause:
    """Why a store did not do what was asked."""
    if isinstance(error, ClockSkewError):
        return Cause.CLOCK_SKEW
    return Cause.STORE_UNAVAILABLE


def cause_of_relay(error: RelayError, refused: Cause) -> Cause:
    """Why the trial's relay did not do what was asked.

    Args:
        error: of its client.
        refused: the cause where the relay was there and refused.
    """
    if isinstance(error, RelayUnreachableError):
        return Cause.RELAY_UNAVAILABLE
    if isinstance(error, RelayRefusedError) and error.status in NOT_THERE:
        return Cause.RELAY_UNAVAILABLE
    if isinstance(error, RelayRefusedError) and error.is_for_the_time:
        return Cause.CLOCK_SKEW
    return refused


@dataclass
class Clock:
    """A phase's running clock."""

    cause: Cause
    """Of the ``PhaseError`` if it fires now; a phase may change it as it goes."""


@asynccontextmanager
async def deadline(clock: str, seconds: float, cause: Cause) -> AsyncIterator[Clock]:
    """Bounds a block by a named clock.

    Only this clock's own expiry is turned into a ``PhaseError``: a ``TimeoutError`` that
    something inside raises passes through as it is, since on Python 3.11 both have one class.

    Args:
        clock: the name that the error gives, for example ``provision_s``.
        seconds: the bound.
        cause: the cause of the ``PhaseError``, until the block says otherwise.

    Raises:
        PhaseError: the bound was reached; the detail says how long it really ran.
    """
    started = time.monotonic()
    running = Clock(cause)
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            yield running
    except TimeoutError as error:
        if not scope.expired():
            raise
        ran = time.monotonic() - started
        raise PhaseError(
            running.cause, f"clock {clock} of {seconds:g} s fired after {ran:.1f} s"
        ) from error
