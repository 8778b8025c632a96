"""From a store to ``SweepResults``: the locks, every commit and every try's record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from scheduler.lock import Lock, read_locks
from scheduler.report.results import AttemptResults, CellResults, SweepResults
from workers.contract.result import TryRecord
from workers.contract.spec import Epoch, attempt_id, cell_id
from workers.storage.interface import Store

READERS = 16
"""Reads at once: an object store answers each in tens of milliseconds."""


def collect(store: Store, sweep: str) -> SweepResults:
    """All that a sweep has left in its store so far; blocks.

    Raises:
        LockError: there is no such sweep.
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    lock = read_locks(store, sweep)[-1]
    results = {
        record.attempt: record
        for record in _records(store, _ending(store, f"sweeps/{sweep}/attempts/", "/result.json"))
    }
    tries: defaultdict[str, list[TryRecord]] = defaultdict(list)
    for record in _records(store, _ending(store, f"sweeps/{sweep}/tries/", "/try.json")):
        tries[record.attempt].append(record)
    return arrange(lock, results, tries)


def arrange(
    lock: Lock, results: Mapping[str, TryRecord], tries: Mapping[str, Sequence[TryRecord]]
) -> SweepResults:
    """Records laid out as the lock plans them, by task and condition. Pure.

    Records of attempts that the lock does not plan are left out.
    """
    cells = []
    for task in lock.tasks:
        for condition in lock.conditions:
            cell = cell_id(condition.digest, task.digest)
            ids = (
                attempt_id(lock.sweep, condition.digest, task.digest, index)
                for index in range(lock.attempts[cell])
            )
            cells.append(
                CellResults(
                    cell=cell,
                    condition=condition.manifest.condition,
                    condition_digest=condition.digest,
                    task=task.name,
                    layer=task.layer,
                    attempts=tuple(
                        AttemptResults(
                            attempt=attempt,
                            index=index,
                            result=results.get(attempt),
                            tries=_in_order(results.get(attempt), tries.get(attempt, ())),
                            max_tries=lock.limits.max_tries,
                        )
                        for index, attempt in enumerate(ids)
                    ),
                )
            )
    return SweepResults(
        sweep=lock.sweep,
        rule=lock.scoring.rule,
        coverage_gate=lock.scoring.coverage_gate,
        cells=tuple(cells),
    )


def _in_order(result: TryRecord | None, tries: Iterable[TryRecord]) -> tuple[TryRecord, ...]:
    known = {record.try_: record for record in tries}
    if result is not None:
        # A commit whose try's own record was not listed yet is a try nevertheless.
        known.setdefault(result.try_, result)
    return tuple(sorted(known.values(), key=lambda record: Epoch.parse(record.try_)))


def _ending(store: Store, prefix: str, ending: str) -> list[str]:
    return [key for key in store.keys(prefix) if key.endswith(ending)]


def _records(store: Store, keys: Sequence[str]) -> list[TryRecord]:
    with ThreadPoolExecutor(READERS, thread_name_prefix="collect") as pool:
        return list(pool.map(lambda key: TryRecord.from_json(store.get(key), key), keys))
