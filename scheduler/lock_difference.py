"""What one lock of a sweep changed: what it added, what it kept, what began anew. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduler.lock_format import Lock, LockedCell
from workers.contract.base import Strict


class Changed(NamedTuple):
    """A task or a condition that has another digest in the later lock."""

    what: str
    """``task`` or ``condition``."""
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """What a lock plans that earlier ones do not, and the other way round."""

    number: int
    """Of the later lock."""
    grown_at: str
    new_tasks: tuple[str, ...]
    new_conditions: tuple[str, ...]
    changed: tuple[Changed, ...]
    added: int
    """Attempts that no earlier lock plans."""
    kept: int
    """Attempts that an earlier lock plans too."""
    superseded: tuple[LockedCell, ...]
    """Cells that the lock before plans and this one does not."""
    settings: tuple[str, ...]
    """What else differs, such as the budget: ``budget.max_calls: 10 -> 20``."""


def difference(before: Sequence[Lock], after: Lock) -> Difference:
    """What a lock changes. Pure.

    Args:
        before: all locks before it, by number, at least one.
        after: the lock.
    """
    last = before[-1]
    most: dict[str, int] = {}
    for lock in before:
        for cell, count in lock.attempts.items():
            most[cell] = max(count, most.get(cell, 0))
    kept = sum(min(count, most.get(cell, 0)) for cell, count in after.attempts.items())
    tasks, conditions = _digests(last)
    new_tasks, new_conditions = _digests(after)
    return Difference(
        number=after.number,
        grown_at=after.grown_at or after.started_at,
        new_tasks=tuple(name for name in new_tasks if name not in tasks),
        new_conditions=tuple(name for name in new_conditions if name not in conditions),
        changed=(
            *_changed("task", tasks, new_tasks),
            *_changed("condition", conditions, new_conditions),
        ),
        added=sum(after.attempts.values()) - kept,
        kept=kept,
        superseded=tuple(each for each in last.cells if each.cell not in after.attempts),
        settings=tuple(_settings(last, after)),
    )


def _digests(lock: Lock) -> tuple[dict[str, str], dict[str, str]]:
    """The digests of tasks and of conditions by name."""
    tasks = {task.name: task.digest for task in lock.tasks}
    return tasks, {each.manifest.condition: each.digest for each in lock.conditions}


def _changed(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Changed]:
    for name, digest in new.items():
        if name in old and old[name] != digest:
            yield Changed(what, name, old[name], digest)


def _settings(before: Lock, after: Lock) -> Iterator[str]:
    for field in ("budget", "canary", "versions"):
        yield from _unequal(field, getattr(before, field), getattr(after, field))
    for name in sorted(before.endpoints.keys() & after.endpoints.keys()):
        yield from _unequal(f"endpoints.{name}", before.endpoints[name], after.endpoints[name])


def _unequal(field: str, before: Strict, after: Strict) -> Iterator[str]:
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    for name in new:
        if old.get(name) != new[name]:
            yield f"{field}.{name}: {shown(old.get(name))} -> {shown(new[name])}"


def shown(value: Any) -> str:
    """A setting as people read it."""
    return "none" if value is None else str(value)
