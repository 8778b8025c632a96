"""What the driver asks of the store beside its loop: what became of tries it lost sight of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from scheduler.queue import LostLease, State, WorkQueue
from scheduler.view import Observer
from workers.contract.outcome import Cause, Phase, Verdict, outcome_of
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Epoch
from workers.contract.unfinished import unfinished_record
from workers.storage.interface import StoreError

KEPT_BY_DRIVER = frozenset(
    {Cause.UNCLASSIFIED, Cause.STORE_UNAVAILABLE, Cause.CLOCK_SKEW, Cause.CANCELLED}
)
"""Causes of tries whose node may have been unable to write ``try.json`` itself."""


class Records(Protocol):
    """The sweep's records in the store (``scheduler.commit.Ledger``); all may raise StoreError."""

    async def recover(self, attempt: str) -> TryRecord | None:
        """The attempt's commit, or one made now of a try that had finished; None if neither."""
        ...

    async def accept(self, record: TryRecord) -> TryRecord:
        """Commits a finished try for its node; gives the commit that counts."""
        ...

    async def keep(self, record: TryRecord) -> None:
        """Writes ``try.json`` for a try whose node could not."""
        ...

    def counted(self, record: TryRecord) -> bool:
        """A commit was counted; says whether the index is to be written."""
        ...

    async def write_index(self) -> None:
        """Writes what has been counted since it was written last."""
        ...

    def knows(self, attempt: str, try_: str) -> bool:
        """Whether this invalid try was counted when the queue was rebuilt."""
        ...


class Recovery:
    """Questions to the store, each a task of its owner's, none longer than the store's timeout."""

    def __init__(
        self,
        sweep: str,
        cells: Mapping[str, CellSpec],
        queue: WorkQueue,
        records: Records,
        observer: Observer,
        *,
        clock: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """Asks nothing yet; ``spawn`` starts a task that its owner supervises."""
        self._sweep = sweep
        self._cells = cells
        self._queue = queue
        self._records = records
        self._observer = observer
        self._clock = clock
        self._spawn = spawn
        self._asking: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether a question is open: the sweep is not at its end before it is answered."""
        return bool(self._asking)

    def lost(self, leases: Iterable[LostLease], cause: Cause, why: str) -> None:
        """Leases ended without their nodes' word: looks for a commit, else counts the tries."""
        for lease in leases:
            self._ask(self._look_for(lease, cause, why))

    def late(self, record: TryRecord) -> None:
        """A try finished after its lease: it is committed unless another one was."""
        if self._queue.state(record.attempt) not in (None, State.COMMITTED, State.LOST):
            self._ask(self._accept(record))

    def ended(self, record: TryRecord) -> None:
        """A try's end was counted: tells the observer, and makes sure that a record is kept."""
        self._observer.ended(record)
        if record.verdict is not Verdict.INVALID:
            if self._records.counted(record):
                self._ask(self._write_index())
        elif record.cause in KEPT_BY_DRIVER:
            self._ask(self._keep(record))

    def missed(self, node: str, record: TryRecord) -> None:
        """An earlier driver's try ended without a verdict, and nobody was there to be told.

        It counts now, unless it had been written when this driver read the store.
        """
        if self._records.knows(record.attempt, record.try_):
            return
        now = self._clock()
        tries = {record.attempt: Epoch(*record.epoch)}
        if self._queue.adopt(node, tries, now) and self._queue.ended(record, now):
            self.ended(record)

    def _ask(self, question: Coroutine[Any, Any, None]) -> None:
        task = self._spawn(question)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _look_for(self, lease: LostLease, cause: Cause, why: str) -> None:
        found: TryRecord | None = None
        try:
            found = await self._records.recover(lease.attempt)
        except StoreError as error:
            # Trying it again is safe: the first commit counts, whenever it is found.
            self._observer.note(f"attempt {lease.attempt}: {error}")
        if found is not None:
            self._found(found)
        elif self._queue.release(lease, self._clock(), cause):
            record = self._lost_record(lease, cause, why)
            self.ended(record)
            await self._keep(record)

    async def _accept(self, record: TryRecord) -> None:
        try:
            self._found(await self._records.accept(record))
        except StoreError as error:
            self._observer.note(f"late try {record.try_} of attempt {record.attempt}: {error}")

    async def _keep(self, record: TryRecord) -> None:
        try:
            await self._records.keep(record)
        except StoreError as error:
            self._observer.note(f"try {record.try_} of attempt {record.attempt}: {error}")

    async def _write_index(self) -> None:
        try:
            await self._records.write_index()
        except StoreError as error:
            self._observer.note(f"the index of commits: {error}")

    def _found(self, record: TryRecord) -> None:
        if self._queue.committed(record.attempt, record.verdict, record.cause):
            self.ended(record)

    def _lost_record(self, lease: LostLease, cause: Cause, why: str) -> TryRecord:
        now = datetime.now(UTC)
        held = timedelta(seconds=self._clock() - lease.leased_at)
        return unfinished_record(
            # In which phase it was lost is not known: the trial had at least begun to prepare.
            outcome_of(cause, Phase.PREPARE, why),
            sweep=self._sweep,
            cell=self._cells[lease.cell],
            attempt=lease.attempt,
            index=lease.index,
            epoch=lease.epoch,
            node=lease.node,
            started_at=_rfc3339(now - held),
            ended_at=_rfc3339(now),
        )


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
