"""What a sweep has spent so far, as its store tells: from its tries, and from its drivers' notes.

A try's record says what it spent. A try that runs, or was lost with its node, has none, so a driver
also notes what no record tells (``spending/<g>.json``). A later driver counts both, but for what
the nodes tell themselves that it adopts.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Literal

from scheduler.lending import Earlier, Lender, counted
from scheduler.store_calls import StoreCalls
from workers.contract.base import FormatError, Strict
from workers.contract.budget import Spending
from workers.contract.result import is_try_record, record_at
from workers.storage.interface import Store, StoreError

NOTE_EVERY_S = 5.0
READERS = 8


class SpendingNote(Strict):
    """``spending/<g>.json``: what no record tells; the note of the latest driver is in force."""

    schema_version: Literal[1] = 1
    sweep: str
    generation: int
    lost: Spending
    """Lent to nodes that died."""
    left: dict[str, Spending]
    """By node: in tries that had not ended."""


async def earlier_spending(calls: StoreCalls, sweep: str) -> Earlier:
    """What was spent on a sweep before now, in every try, whatever became of it.

    Raises:
        StoreError: the store refused, or holds something else where a record should be.
    """
    return await calls.listing(lambda: _earlier(calls.store, sweep))


def _earlier(store: Store, sweep: str) -> Earlier:
    keys = [key for key in store.keys(f"sweeps/{sweep}/tries/") if is_try_record(key)]
    with ThreadPoolExecutor(READERS, thread_name_prefix="spending") as pool:
        recorded = sum(pool.map(functools.partial(_spent_by, store), keys), Spending())
    note = _latest_note(store, sweep)
    return Earlier(
        recorded=recorded,
        tries=frozenset("/".join(key.split("/")[4:6]) for key in keys),
        lost=note.lost if note is not None else Spending(),
        left=note.left if note is not None else {},
    )


@asynccontextmanager
async def noted(
    calls: StoreCalls, sweep: str, generation: int, lender: Lender, tell: Callable[[str], None]
) -> AsyncIterator[None]:
    """Notes a driver's spending every few seconds while it is open, and when it is left.

    ``tell`` is told once that the budget is spent. Without a budget nothing is noted.
    """
    if not lender.is_limited:
        yield
        return
    ending = asyncio.Event()
    notes = asyncio.create_task(_keep_noting(calls, sweep, generation, lender, tell, ending))
    try:
        yield
    finally:
        ending.set()
        # Not cancelled: a note that is being written could come after the last one.
        await notes
        await note_spending(calls, sweep, generation, lender)


async def _keep_noting(
    calls: StoreCalls,
    sweep: str,
    generation: int,
    lender: Lender,
    tell: Callable[[str], None],
    ending: asyncio.Event,
) -> None:
    before: SpendingNote | None = None
    told = False
    while not ending.is_set():
        if not told and lender.reached is not None:
            told = True
            tell(
                f"the sweep's budget is spent ({lender.reached}): nothing more is started, and "
                "trials that run end when they need another call"
            )
        before = await note_spending(calls, sweep, generation, lender, before)
        with suppress(TimeoutError):
            async with asyncio.timeout(NOTE_EVERY_S):
                await ending.wait()


async def note_spending(
    calls: StoreCalls,
    sweep: str,
    generation: int,
    lender: Lender,
    before: SpendingNote | None = None,
) -> SpendingNote | None:
    """Writes what no record tells by now, unless it is what was written before.

    A store that refuses is asked again the next time: the records hold most of it.

    Returns:
        What stands in the store.
    """
    lost, left = lender.unrecorded
    left = {node: spent for node, spent in left.items() if spent != Spending()}
    note = SpendingNote(sweep=sweep, generation=generation, lost=lost, left=left)
    if note == before:
        return before
    key = f"{_prefix(sweep)}{generation}.json"
    write: Callable[[], object] = functools.partial(
        calls.store.put, key, note.to_json().encode() + b"\n"
    )
    try:
        await calls.call(write)
    except StoreError:
        return before
    return note


def _prefix(sweep: str) -> str:
    return f"sweeps/{sweep}/spending/"


def _spent_by(store: Store, key: str) -> Spending:
    try:
        return counted(record_at(key, store.get(key)))
    except FormatError as error:
        raise StoreError(f"read {key}: it is not the record of a try: {error}") from error


def _latest_note(store: Store, sweep: str) -> SpendingNote | None:
    prefix = _prefix(sweep)
    names = (key.removeprefix(prefix).removesuffix(".json") for key in store.keys(prefix))
    number = max((int(name) for name in names if name.isdecimal()), default=None)
    if number is None:
        return None
    key = f"{prefix}{number}.json"
    try:
        return SpendingNote.from_json(store.get(key), key)
    except FormatError as error:
        raise StoreError(f"read {key}: it is not a driver's note: {error}") from error
