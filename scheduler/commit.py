"""Stage 7, commit: TrialEnd -> TryRecord.

The store is the ledger: an attempt counts once its ``result.json`` exists, and it is created
once. Nodes commit on their own; here the driver finds out what is committed, counts the tries
that said nothing, and finishes tries whose node could not commit.

*Why a finished try is accepted before its attempt is leased again:* a slow try that passed its
lease's deadline would otherwise always lose to a quick second one, and quick tries are not a
fair sample.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self, TypeVar

from scheduler.index import IndexWriter, read_index
from scheduler.retry import DeadRetry, Revival, Spent, fresh_from, revival_prefix, spent_by
from scheduler.store_calls import STORE_TIMEOUT_S, THREADS, StoreCalls
from workers.contract.base import FormatError
from workers.contract.outcome import Cause, Verdict
from workers.contract.result import TryRecord, is_try_record, record_at, result_key, try_prefix
from workers.contract.spec import Epoch
from workers.storage.interface import MissingKeyError, Store, StoreError

T = TypeVar("T")
Tries = dict[str, list[TryRecord]]
"""The records of tries by attempt, in the order of their epochs."""

FEW_ATTEMPTS = 64
"""Up to so many attempts the tries are listed one by one in any case."""
MANY_ATTEMPTS = 800
"""Beyond so many they never are."""
FILES_OF_A_TRY = 10
"""About; a listing gives a thousand of them at a time."""
FOLDERS = 256
"""That the tries of a sweep are in, by the first byte of their attempts' ids."""


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
    revived: int = 0
    """Dead attempts that got fresh tries just now."""
    causes: Mapping[str, Cause] = field(default_factory=dict)
    """Of the commits, and of the last tries of attempts that have none."""


class Ledger:
    """One sweep's records in the store, seen by its driver; an async context manager.

    Store calls run in threads of its own, each with a timeout. All methods raise ``StoreError``
    where the store does not do what was asked.
    """

    def __init__(self, store: Store, sweep: str, timeout_s: float = STORE_TIMEOUT_S) -> None:
        self._store = store
        self._sweep = sweep
        self.calls = StoreCalls(store, timeout_s)
        self._known: set[tuple[str, str]] = set()
        """Invalid tries that were counted when the queue was rebuilt."""
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
        self.calls.end()

    def begin(self, generation: int) -> None:
        """The driver has claimed its generation: segments of the index carry it."""
        self._index = IndexWriter(self._sweep, generation)

    async def rebuild(
        self,
        attempts: Sequence[PlannedAttempt],
        generation: int,
        *,
        retry: DeadRetry | None = None,
        max_tries: int = 1,
    ) -> Rebuilt:
        """Reads what earlier drivers left; finished tries without a commit are committed.

        Args:
            attempts: all of the sweep's.
            generation: of this driver.
            retry: which dead attempts get fresh tries, now and for all later drivers.
            max_tries: of the sweep's limits; decides which are dead.
        """
        if generation == 1:
            return Rebuilt({}, {})
        planned = {each.attempt for each in attempts}
        found = await self._listing(lambda: self._committed(planned))
        committed = {attempt: verdict for attempt, (verdict, _) in found.items()}
        causes = {attempt: cause for attempt, (_, cause) in found.items()}
        missing = [each.attempt for each in attempts if each.attempt not in committed]
        tries = await self._listing(lambda: self._tries_of_many(missing, len(committed)))
        fresh = fresh_from(await self._listing(self._revivals))
        spent: dict[str, Spent] = {}
        for attempt, records in tries.items():
            finished = _first_finished(records)
            if finished is not None:
                record = await self.accept(finished)
                committed[attempt], causes[attempt] = record.verdict, record.cause
            else:
                causes[attempt] = records[-1].cause
                spent[attempt] = spent_by(records, fresh.get(attempt, 0))
                self._known.update((attempt, record.try_) for record in records)
        if retry is None:
            return Rebuilt(committed, spent, causes=causes)
        dead = [a for a in spent if retry.means(spent[a], tries[a][-1].cause, max_tries)]
        if dead:
            await self._revive(generation, retry, dead)
        spent.update({attempt: spent[attempt].fresh() for attempt in dead})
        return Rebuilt(committed, spent, revived=len(dead), causes=causes)

    async def _revive(self, generation: int, retry: DeadRetry, dead: Sequence[str]) -> None:
        """Puts fresh tries on record, before any of them is made."""
        revival = Revival(
            sweep=self._sweep,
            generation=generation,
            at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            causes=tuple(sorted(retry.causes)),
            attempts=tuple(sorted(dead)),
        )
        key = f"{revival_prefix(self._sweep)}{generation}.json"
        document = revival.to_json().encode() + b"\n"
        if not await self._call(functools.partial(self._store.create, key, document)):
            raise StoreError(f"create {key}: it is there already, and this driver did not write it")

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

    def knows(self, attempt: str, try_: str) -> bool:
        """Whether this invalid try was counted when the queue was rebuilt."""
        return (attempt, try_) in self._known

    def counted(self, record: TryRecord) -> bool:
        """A commit was counted: it goes into the index.

        Returns:
            Whether a segment of it is to be written (``write_index``).
        """
        self._index.add(record.attempt, record.verdict, record.cause)
        return self._index.is_due

    async def write_index(self) -> None:
        """Writes what has been counted since the last segment."""
        segment = self._index.take()
        if segment is not None:
            await self._call(functools.partial(self._store.put, *segment))

    # In threads

    def _committed(self, planned: set[str]) -> dict[str, tuple[Verdict, Cause]]:
        """Verdict and cause of the commits that a listing shows: from the index, else from each."""
        known = read_index(self._store, self._sweep, _side_by_side)
        committed: dict[str, tuple[Verdict, Cause]] = {}
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
            committed[record.attempt] = record.verdict, record.cause
            self._index.add(record.attempt, record.verdict, record.cause)
        return committed

    def _revivals(self) -> list[Revival]:
        keys = self._store.keys(revival_prefix(self._sweep))
        try:
            return [Revival.from_json(self._store.get(key), key) for key in keys]
        except FormatError as error:
            raise StoreError(f"read the operator's records: {error}") from error

    def _result(self, attempt: str) -> TryRecord | None:
        try:
            return self._read(result_key(self._sweep, attempt))
        except MissingKeyError:
            return None

    def _read(self, key: str) -> TryRecord:
        try:
            return record_at(key, self._store.get(key))
        except FormatError as error:
            raise StoreError(f"read {key}: it is not the record of a try: {error}") from error

    def _tries_of(self, attempts: Iterable[str]) -> Tries:
        def listed(attempt: str) -> list[str]:
            return list(self._store.keys(f"sweeps/{self._sweep}/tries/{attempt[:2]}/{attempt}/"))

        found = _side_by_side(listed, list(attempts))
        return self._records(key for keys in found for key in keys)

    def _tries_of_many(self, attempts: Sequence[str], committed: int) -> Tries:
        """The tries of attempts by the fewest listings: on S3 each of them costs a round trip.

        Args:
            attempts: those without a commit.
            committed: how many others there are; nearly all have one try.
        """
        every = 1 + committed * FILES_OF_A_TRY // 1000
        if len(attempts) <= max(FEW_ATTEMPTS, min(every, MANY_ATTEMPTS)):
            return self._tries_of(attempts)
        if every > FOLDERS:
            attempts = self._tried(attempts)
            if len(attempts) <= MANY_ATTEMPTS:
                return self._tries_of(attempts)
        return self._all_tries(set(attempts))

    def _tried(self, attempts: Sequence[str]) -> list[str]:
        """Those of the attempts that have tries."""
        folders = [f"sweeps/{self._sweep}/tries/{each}/" for each in {a[:2] for a in attempts}]
        found = _side_by_side(self._store.children, folders)
        there = {attempt for names in found for attempt in names}
        return [each for each in attempts if each in there]

    def _all_tries(self, attempts: set[str]) -> Tries:
        keys = self._store.keys(f"sweeps/{self._sweep}/tries/")
        return self._records(key for key in keys if attempts.intersection(key.split("/")[4:5]))

    def _records(self, keys: Iterable[str]) -> Tries:
        wanted = [key for key in keys if is_try_record(key)]
        tries: Tries = {}
        for record in self._read_all(wanted):
            tries.setdefault(record.attempt, []).append(record)
        for records in tries.values():
            records.sort(key=lambda record: Epoch.parse(record.try_))
        return tries

    def _read_all(self, keys: Sequence[str]) -> list[TryRecord]:
        return list(_side_by_side(self._read, keys))

    # Timeouts

    async def _call(self, call: Callable[[], T]) -> T:
        return await self.calls.call(call)

    async def _listing(self, call: Callable[[], T]) -> T:
        return await self.calls.listing(call)


def _side_by_side(read: Callable[[str], T], keys: Sequence[str]) -> Iterable[T]:
    """Reads in threads of its own: a store that is far away is slow only once."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="driver-read") as pool:
        return list(pool.map(read, keys))


def _first_finished(records: Iterable[TryRecord]) -> TryRecord | None:
    return next((each for each in records if each.verdict is not Verdict.INVALID), None)
