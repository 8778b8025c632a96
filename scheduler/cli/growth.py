"""How a sweep's growth is told: what is added, what is kept, what begins anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from scheduler.lock import Lock
from scheduler.lock_difference import Difference, difference
from scheduler.lock_format import LockedCell
from scheduler.plan import Plan
from scheduler.report.names import counted, short_name
from workers.storage import Store

NAMES = 8
"""Tasks or conditions named in one line."""


def committed(store: Store, sweep: str) -> frozenset[str]:
    """The ids of a sweep's attempts that have a result; blocks for one listing."""
    keys = store.keys(f"sweeps/{sweep}/attempts/")
    return frozenset(key.split("/")[4] for key in keys if key.endswith("/result.json"))


def left_of(plan: Plan, done: frozenset[str]) -> Plan:
    """The plan without its attempts that have a result, for what is still to be paid."""
    attempts = tuple(each for each in plan.attempts if each.attempt not in done)
    counts = Counter(each.cell for each in attempts)
    left = {cell.cell: counts[cell.cell] for cell in plan.cells}
    return replace(plan, attempts=attempts, counts=left)


def growth_lines(sweep: str, told: Difference, done: frozenset[str]) -> Iterator[str]:
    """A difference in sentences.

    Args:
        sweep: its id.
        told: between one lock and those before it.
        done: the attempts that have a result.
    """
    yield f"{counted(told.added, 'attempt')} added, {told.kept} kept"
    for what, names in (("task", told.new_tasks), ("condition", told.new_conditions)):
        if names:
            yield f"new {what if len(names) == 1 else what + 's'}: {_few(names)}"
    results = _results(sweep, told.superseded, done)
    for each in told.changed:
        old = results[each.what, each.name]
        yield (
            f"{each.what} {short_name(each.name)} has changed, {each.before[:12]} to "
            f"{each.after[:12]}: new cells; {counted(old, 'result')} of the old "
            f"{'stays' if old == 1 else 'stay'} under the old digest and no longer "
            f"{'counts' if old == 1 else 'count'}"
        )
    yield from told.settings


def growth_document(sweep: str, told: Difference, done: frozenset[str]) -> dict[str, Any]:
    """A difference for machines."""
    results = _results(sweep, told.superseded, done)
    return {
        "lock": told.number,
        "grown_at": told.grown_at,
        "added": told.added,
        "kept": told.kept,
        "new_tasks": list(told.new_tasks),
        "new_conditions": list(told.new_conditions),
        "changed": [
            {**each._asdict(), "superseded_results": results[each.what, each.name]}
            for each in told.changed
        ],
        "superseded_cells": [each.cell for each in told.superseded],
        "settings": list(told.settings),
    }


def differences(locks: Sequence[Lock]) -> tuple[Difference, ...]:
    """What every lock but the first changed."""
    return tuple(difference(locks[:place], locks[place]) for place in range(1, len(locks)))


def _results(
    sweep: str, cells: Iterable[LockedCell], done: frozenset[str]
) -> Counter[tuple[str, str]]:
    """Results of superseded cells by what and name, as ``Changed`` has them."""
    results: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        found = sum(attempt in done for attempt in cell.ids(sweep))
        results["task", cell.task.name] += found
        results["condition", cell.condition.manifest.condition] += found
    return results


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(short_name(name) for name in names[:NAMES]) + more
