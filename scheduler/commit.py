"""Stage 7, commit: TrialEnd -> TryRecord.

The store is the ledger: an attempt counts once its ``result.json`` exists, and it is created
once. Nodes commit on their own; here the driver finds out what is committed, counts the tries
that said nothing, and finishes tries whose node could not commit.

*Why a finished try is accepted before its attempt is leased again:* a slow try that passed its
lease's deadline would otherwise always lose to a quick second one, and quick tries are not a
fair sample.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar

from scheduler.errors import DriverClaimError
from scheduler.index import IndexWriter, read_index
from scheduler.retry import Spent, spent_by
from workers.contract.base import FormatError, Strict
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.contract.spec import Epoch
from workers.storage.interface import MissingKeyError, Store, StoreError

T = TypeVar("T")

STORE_TIMEOUT_S = 60.0
"""One store call of the driver's; a listing may take ten times as long."""

THREADS = 8
CLAIMS_AT_MOST = 100
"""Drivers that may claim a generation between our listing and our claim."""

FEW_ATTEMPTS = 64
"""Up to so many attempts, plus a fiftieth of the committed, the tries are listed one by one."""


class DriverClaim(Strict):
    """``drivers/<g>.json``: a driver generation is taken by creating it."""

    schema_version: Literal[1] = 1
    sweep: str
    generation: int
    host: str
    started_at: str
    """RFC 3339, UTC."""


class PlannedAttempt(Protocol):
    """What is needed here of a planned attempt."""

    @property
    def attempt(self) -> str:
        """Its id."""
        ...


@dataclass(frozen=True)
class Rebuilt:
    """What the store says of a sweep's attempts."""

    committed: Mapping[str, Verdict]
    """Of the attempts that have a ``result.json``."""
    spent: Mapping[str, Spent]
    """Invalid tries of those that have none; an attempt without such tries is left out."""


class Ledger:
    """One sweep's records in the store, seen by its driver; an async context manager.

    Store calls run in threads of its own, each with a timeout. All methods raise ``StoreError``
    where the store does not do what was asked.
    """

    def __init__(self, store: Store, sweep: str, timeout_s: float = STORE_TIMEOUT_S) -> None:
        self._store = store
        self._sweep = sweep
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="driver-store")
        self._index = IndexWriter(sweep, 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(StoreError):
            # The index is derived: without it the next start takes longer, and that is all.
            await self.write_index()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def claim(self) -> int:
        """Claims the next driver generation; nodes refuse the orders of lower ones.

        Raises:
            DriverClaimError: others were quicker, again and again.
        """
        generation = 1 + await self._listing(self._last_generation)
        for candidate in range(generation, generation + CLAIMS_AT_MOST):
            claim = DriverClaim(
                sweep=self._sweep,
                generation=candidate,
                host=platform.node(),
                started_at=_now(),
            )
            key = f"sweeps/{self._sweep}/drivers/{candidate}.json"
            document = claim.to_json().encode() + b"\n"
            if await self._call(functools.partial(self._store.create, key, document)):
                self._index = IndexWriter(self._sweep, candidate)
                return candidate
        raise DriverClaimError(
            f"sweep {self._sweep}: driver generations {generation} to {candidate} were all "
            "claimed by others; is the sweep started in a loop?"
        )

    async def rebuild(self, attempts: Sequence[PlannedAttempt], generation: int) -> Rebuilt:
        """Reads what earlier drivers left; finished tries without a commit are committed."""
        if generation == 1:
            return Rebuilt({}, {})
        planned = {each.attempt for each in attempts}
        committed = await self._listing(lambda: self._committed(planned))
        missing = [each.attempt for each in attempts if each.attempt not in committed]
        if len(missing) <= FEW_ATTEMPTS + len(committed) // 50:
            tries = await self._listing(lambda: self._tries_of(missing))
        else:
            tries = await self._listing(lambda: self._all_tries(set(missing)))
        spent: dict[str, Spent] = {}
        for attempt, records in tries.items():
            finished = _first_finished(records)
            if finished is not None:
                committed[attempt] = (await self.accept(finished)).verdict
            else:
                spent[attempt] = spent_by(record.blame for record in records)
        return Rebuilt(committed, spent)

    async def recover(self, attempt: str) -> TryRecord | None:
        """The attempt's commit, or one made now of a try that had finished; None if neither."""
        committed = await self._call(lambda: self._result(attempt))
        if committed is not None:
            return committed
        tries = await self._call(lambda: self._tries_of([attempt]))
        finished = _first_finished(tries.get(attempt, ()))
        return None if finished is None else await self.accept(finished)

    async def accept(self, record: TryRecord) -> TryRecord:
        """Commits a finished try for its node; gives the commit that counts, whoever's it is."""
        key = result_key(self._sweep, record.attempt)
        document = record.to_json().encode() + b"\n"
        if await self._call(functools.partial(self._store.create, key, document)):
            return record
        committed = await self._call(lambda: self._result(record.attempt))
        if committed is None:
            raise StoreError(f"create {key}: an object was there, and then it was not")
        return committed

    async def keep(self, record: TryRecord) -> None:
        """Writes ``try.json`` for a try whose node could not; an existing one is left alone."""
        key = f"{try_prefix(self._sweep, record.attempt, record.try_)}/try.json"
        document = record.to_json().encode() + b"\n"
        await self._call(functools.partial(self._store.create, key, document))

    def counted(self, record: TryRecord) -> bool:
        """A commit was counted: it goes into the index.

        Returns:
            Whether a segment of it is to be written (``write_index``).
        """
        self._index.add(record.attempt, record.verdict)
        return self._index.is_due

    async def write_index(self) -> None:
        """Writes what has been counted since the last segment."""
        segment = self._index.take()
        if segment is not None:
            await self._call(functools.partial(self._store.put, *segment))

    # In threads

    def _last_generation(self) -> int:
        prefix = f"sweeps/{self._sweep}/drivers/"
        names = (key.removeprefix(prefix) for key in self._store.keys(prefix))
        numbers = (name.removesuffix(".json") for name in names)
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def _committed(self, planned: set[str]) -> dict[str, Verdict]:
        """The verdicts of the commits that a listing shows: from the index, else from each."""
        known = read_index(self._store, self._sweep, _side_by_side)
        committed: dict[str, Verdict] = {}
        unknown: list[str] = []
        for key in self._store.keys(f"sweeps/{self._sweep}/attempts/"):
            attempt = key.removesuffix("/result.json").rpartition("/")[2]
            if attempt not in planned:
                continue
            if attempt in known:
                committed[attempt] = known[attempt]
            else:
                unknown.append(key)
        for record in self._read_all(unknown):
            committed[record.attempt] = record.verdict
            self._index.add(record.attempt, record.verdict)
        return committed

    def _result(self, attempt: str) -> TryRecord | None:
        try:
            return self._read(result_key(self._sweep, attempt))
        except MissingKeyError:
            return None

    def _read(self, key: str) -> TryRecord:
        try:
            return TryRecord.from_json(self._store.get(key), key)
        except FormatError as error:
            raise StoreError(f"read {key}: it is not the record of a try: {error}") from error

    def _tries_of(self, attempts: Iterable[str]) -> dict[str, list[TryRecord]]:
        keys = [
            key
            for attempt in attempts
            for key in self._store.keys(f"sweeps/{self._sweep}/tries/{attempt[:2]}/{attempt}/")
        ]
        return self._records(keys)

    def _all_tries(self, attempts: set[str]) -> dict[str, list[TryRecord]]:
        keys = self._store.keys(f"sweeps/{self._sweep}/tries/")
        return self._records(key for key in keys if key.split("/")[4] in attempts)

    def _records(self, keys: Iterable[str]) -> dict[str, list[TryRecord]]:
        """The records of tries by attempt, in the order of their epochs."""
        wanted = [key for key in keys if key.endswith("/try.json") and key.count("/") == 6]
        tries: dict[str, list[TryRecord]] = {}
        for record in self._read_all(wanted):
            tries.setdefault(record.attempt, []).append(record)
        for records in tries.values():
            records.sort(key=lambda record: Epoch.parse(record.try_))
        return tries

    def _read_all(self, keys: Sequence[str]) -> list[TryRecord]:
        return list(_side_by_side(self._read, keys))

    # Timeouts

    async def _call(self, call: Callable[[], T]) -> T:
        return await self._within(call, self._timeout_s)

    async def _listing(self, call: Callable[[], T]) -> T:
        return await self._within(call, 10 * self._timeout_s)

    async def _within(self, call: Callable[[], T], timeout_s: float) -> T:
        running = asyncio.get_running_loop().run_in_executor(self._pool, call)
        try:
            return await asyncio.wait_for(running, timeout_s)
        except TimeoutError as error:
            raise StoreError(f"store {self._store.url}: no answer in {timeout_s:.0f} s") from error


def _side_by_side(read: Callable[[str], T], keys: Sequence[str]) -> Iterable[T]:
    """Reads in threads of its own: a store that is far away is slow only once."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="driver-read") as pool:
        return list(pool.map(read, keys))


def _first_finished(records: Iterable[TryRecord]) -> TryRecord | None:
    return next((each for each in records if each.verdict is not Verdict.INVALID), None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
