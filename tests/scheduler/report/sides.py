"""Sweeps for comparisons, written as one letter an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.lock import Lock
from scheduler.report.collect import arrange
from scheduler.report.sides import Side
from tests.scheduler.report.builders import CAUSES, record
from tests.scheduler.report.generated import make_lock
from workers.contract.base import sha256_hex
from workers.contract.result import TryRecord

BASELINE_START = "2026-01-01T00:00:00Z"
NOW_START = "2026-01-02T00:00:00Z"


def side(
    regression: Mapping[str, str] | None = None,
    workflow: Mapping[str, str] | None = None,
    *,
    condition: str = "condition-0",
    started_at: str = BASELINE_START,
    changed: tuple[str, ...] = (),
    **changes: Any,
) -> Side:
    """A sweep of one condition: task to its attempts, as in ``builders.cell``.

    Tasks named in ``changed`` have another digest than elsewhere.
    """
    words = {**(regression or {}), **(workflow or {})}
    kinds = dict.fromkeys(regression or {}, "regression")
    lock = make_lock(
        conditions=1,
        regression=len(kinds),
        workflow=len(words) - len(kinds),
        started_at=started_at,
    )
    return arranged(_renamed(lock, words, condition, changed, changes), words)


def arranged(lock: Lock, words: Mapping[str, str]) -> Side:
    """The lock's cells with these attempts, the same under every condition."""
    results: dict[str, TryRecord] = {}
    tries: dict[str, list[TryRecord]] = {}
    for cell in lock.cells:
        letters = words[cell.task.name.rpartition("/")[2]].split()
        for attempt, word in zip(cell.ids(lock.sweep), letters, strict=True):
            made = [
                record(CAUSES[letter], attempt, number, task=cell.task.name)
                for number, letter in enumerate(word.strip("-"), 1)
            ]
            tries[attempt] = made
            if word[-1] in "pf":
                results[attempt] = made[-1]
    return Side(lock, arrange(lock, results, tries))


def _renamed(
    lock: Lock,
    words: Mapping[str, str],
    condition: str,
    changed: tuple[str, ...],
    changes: Mapping[str, Any],
) -> Lock:
    from tests.scheduler.report.generated import condition_of
    from workers.contract.spec import cell_id

    tasks = []
    for task, name in zip(lock.tasks, words, strict=True):
        head = task.config.task.model_copy(update={"name": f"buzz-native/{name}"})
        digest = sha256_hex(f"{name}{'/changed' if name in changed else ''}".encode())
        config = task.config.model_copy(update={"task": head})
        tasks.append(task.model_copy(update={"config": config, "digest": digest}))
    under = condition_of(condition)
    counts = {
        cell_id(under.digest, task.digest): len(letters.split())
        for task, letters in zip(tasks, words.values(), strict=True)
    }
    return lock.model_copy(
        update={
            "tasks": tuple(tasks),
            "conditions": (under,),
            "attempts": counts,
            **changes,
        }
    )
