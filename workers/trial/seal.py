"""Phase 8, seal: the try's files go to the store side by side, and the commit marker goes last.

A node commits on its own. One that has passed its lease's deadline does not: it writes
``late.json`` into the try, and a driver decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from workers.contract.base import sha256_hex
from workers.contract.outcome import Cause, Verdict
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.contract.trial import Commit
from workers.storage.interface import Store, StoreError
from workers.trial.errors import PhaseError, cause_of_store
from workers.trial.secrets import Secrets

T = TypeVar("T")

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
UPLOADS = 4
"""Of one try side by side: more would hold all threads of a node whose store is slow."""


class SecretFoundError(Exception):
    """A file still holds a secret: it may not be stored."""


def hash_files(out: Path, secrets: Secrets) -> dict[str, str]:
    """Every file of the try by name, with its SHA-256, scanned for secrets once more.

    Raises:
        SecretFoundError: a file holds one; this is a bug of ours, since writes strike them out.
    """
    digests = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        name = path.relative_to(out).as_posix()
        data = path.read_bytes()
        if secrets.found_in(data):
            raise SecretFoundError(f"{name} holds a secret of the trial")
        digests[name] = sha256_hex(data)
    return digests


async def seal(
    store: Store,
    out: Path,
    record: TryRecord,
    lease_valid: Callable[[], bool],
    seconds: float,
) -> Commit:
    """Uploads the try, then commits it if it counts and the lease still holds.

    Raises:
        PhaseError: ``store_unavailable`` or ``clock_skew``: the store did not take it within
            ``seconds``.
    """
    clock = _Clock(seconds)
    prefix = try_prefix(record.sweep, record.attempt, record.try_)
    await _upload(store, out, prefix, sorted(record.files), clock)
    # Only now: a record that says pass or fail may be committed by a driver.
    document = record.to_json().encode() + b"\n"
    await _insist(lambda: store.put(f"{prefix}/try.json", document), clock)
    if record.verdict is Verdict.INVALID:
        return Commit.NONE
    if not lease_valid():
        await _insist(lambda: store.put(f"{prefix}/late.json", document), clock)
        return Commit.LATE
    return await _commit(store, record, document, clock)


async def _upload(
    store: Store, out: Path, prefix: str, names: Sequence[str], clock: _Clock
) -> None:
    """Puts files, a few at a time; the first that fails for good ends all."""
    room = asyncio.Semaphore(UPLOADS)

    async def put(name: str) -> None:
        async with room:
            await _insist(partial(store.put_file, f"{prefix}/{name}", out / name), clock)

    uploads = [asyncio.ensure_future(put(name)) for name in names]
    try:
        await asyncio.gather(*uploads)
    finally:
        for upload in uploads:
            upload.cancel()
        await asyncio.gather(*uploads, return_exceptions=True)


async def _commit(store: Store, record: TryRecord, document: bytes, clock: _Clock) -> Commit:
    key = result_key(record.sweep, record.attempt)
    created = await _insist(lambda: store.create(key, document), clock)
    if created:
        return Commit.WRITTEN
    # A create whose answer was lost is told "there is one" when it is tried again: look whose.
    present = await _insist(lambda: store.get(key), clock)
    return Commit.WRITTEN if present == document else Commit.SUPERSEDED


class _Clock:
    """The time that sealing may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = time.monotonic()

    def left_s(self) -> float:
        """Seconds left; below zero once it has passed."""
        return self._started + self._seconds - time.monotonic()

    def fired(self) -> str:
        """What it says when it has passed."""
        ran = time.monotonic() - self._started
        return f"clock seal_s of {self._seconds:g} s fired after {ran:.1f} s"


async def _insist(call: Callable[[], T], clock: _Clock) -> T:
    """Runs a blocking store call until it works or the time is up."""
    pause = FIRST_PAUSE_S
    while True:
        try:
            return await asyncio.wait_for(asyncio.to_thread(call), max(clock.left_s(), 0.1))
        except TimeoutError as error:
            raise PhaseError(Cause.STORE_UNAVAILABLE, clock.fired()) from error
        except StoreError as error:
            if pause > clock.left_s():
                detail = f"{error}; {clock.fired()}"
                raise PhaseError(cause_of_store(error), detail) from error
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
