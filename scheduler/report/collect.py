"""From a store to ``SweepResults``: the locks, every commit and every try's record."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

from scheduler.lock import Lock, read_locks, superseded
from scheduler.lock_format import LockedCell
from scheduler.report.results import AttemptResults, CellResults, SweepResults
from scheduler.retry import Revival, fresh_from, revival_prefix
from workers.contract.result import TryRecord, is_try_record, record_at
from workers.contract.spec import Epoch
from workers.storage.interface import Store

_RESULT = re.compile(r"sweeps/[^/]+/attempts/[^/]+/[^/]+/result\.json")

READERS = 16
"""Reads at once: an object store answers each in tens of milliseconds."""


def collect(store: Store, sweep: str) -> SweepResults:
    """All that a sweep has left in its store so far; blocks.

    Raises:
        LockError: there is no such sweep.
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    locks = read_locks(store, sweep)
    return collect_under(store, locks[-1], superseded(locks))


def collect_under(store: Store, lock: Lock, old: Sequence[LockedCell] = ()) -> SweepResults:
    """All that a sweep has left so far of what one of its locks plans; blocks.

    Args:
        store: that has the sweep.
        lock: one of it.
        old: cells of earlier locks, to be told apart from the lock's.

    Raises:
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    sweep = lock.sweep
    results = {
        record.attempt: record
        for record in _records(
            store, _matching(store, f"sweeps/{sweep}/attempts/", _RESULT.fullmatch)
        )
    }
    tries: defaultdict[str, list[TryRecord]] = defaultdict(list)
    for record in _records(store, _matching(store, f"sweeps/{sweep}/tries/", is_try_record)):
        tries[record.attempt].append(record)
    revivals = [Revival.from_json(store.get(key), key) for key in store.keys(revival_prefix(sweep))]
    return arrange(lock, results, tries, fresh_from(revivals), old)


def arrange(
    lock: Lock,
    results: Mapping[str, TryRecord],
    tries: Mapping[str, Sequence[TryRecord]],
    fresh: Mapping[str, int] = MappingProxyType({}),
    old: Sequence[LockedCell] = (),
) -> SweepResults:
    """Records laid out as the lock plans them, by task and condition. Pure.

    Records of attempts that the lock does not plan are left out.

    Args:
        lock: the one in force.
        results: attempt to its commit.
        tries: attempt to the records of its tries.
        fresh: attempt to the driver generation for which it got fresh tries last.
        old: cells of earlier locks that are superseded.
    """

    def arranged(cell: LockedCell) -> CellResults:
        return CellResults(
            cell=cell.cell,
            condition=cell.condition.manifest.condition,
            condition_digest=cell.condition.digest,
            task=cell.task.name,
            task_digest=cell.task.digest,
            layer=cell.task.layer,
            canary=cell.condition.canary,
            attempts=tuple(
                AttemptResults(
                    attempt=attempt,
                    index=index,
                    result=results.get(attempt),
                    tries=_in_order(results.get(attempt), tries.get(attempt, ())),
                    max_tries=lock.limits.max_tries,
                    fresh_from=fresh.get(attempt, 0),
                )
                for index, attempt in enumerate(cell.ids(lock.sweep))
            ),
        )

    return SweepResults(
        sweep=lock.sweep,
        rule=lock.scoring.rule,
        coverage_gate=lock.scoring.coverage_gate,
        cells=tuple(arranged(cell) for cell in lock.cells),
        superseded=tuple(arranged(cell) for cell in old),
    )


def _in_order(result: TryRecord | None, tries: Iterable[TryRecord]) -> tuple[TryRecord, ...]:
    known = {record.try_: record for record in tries}
    if result is not None:
        # A commit whose try's own record was not listed yet is a try nevertheless.
        known.setdefault(result.try_, result)
    return tuple(sorted(known.values(), key=lambda record: Epoch.parse(record.try_)))


def _matching(store: Store, prefix: str, is_meant: Callable[[str], object]) -> list[str]:
    return [key for key in store.keys(prefix) if is_meant(key)]


def _records(store: Store, keys: Sequence[str]) -> list[TryRecord]:
    with ThreadPoolExecutor(READERS, thread_name_prefix="collect") as pool:
        return list(pool.map(lambda key: record_at(key, store.get(key)), keys))
