"""From what a user types to a sweep or an attempt of a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from scheduler.cli.exits import UsageFault
from scheduler.lock import LockError, read_locks
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest.faults import nearest_name
from scheduler.report.names import sweep_start
from scheduler.watch.trial_reader import Subject
from workers.contract.base import FormatError
from workers.storage import Store

_ATTEMPT = re.compile(r"sweeps/[^/]+/(?:tries|attempts)/[0-9a-f]{2}/([0-9a-f]{32})/")

LATEST = "latest"


class AttemptName(NamedTuple):
    """An attempt and its sweep."""

    sweep: str
    attempt: str


def list_sweeps(store: Store) -> list[str]:
    """The ids of all sweeps, the one that started last at the end."""
    return sorted(store.children("sweeps/"), key=sweep_start)


def find_sweep(store: Store, name: str) -> str:
    """The sweep that a name means.

    Raises:
        UsageFault: none or several are meant.
    """
    sweeps = list_sweeps(store)
    if not sweeps:
        raise UsageFault(f"{store.url}: there is no sweep in this store yet")
    if name == LATEST:
        return sweeps[-1]
    if name in sweeps:
        return name
    meant = [sweep for sweep in sweeps if sweep.startswith(name)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise UsageFault(f"{name!r} may be any of {', '.join(meant[:8])}: write more of it")
    near = nearest_name(name, sweeps)
    hint = f"did you mean {near!r}?" if near else f"the latest is {sweeps[-1]!r}"
    raise UsageFault(f"{store.url}: there is no sweep {name!r}; {hint}")


def check_attempt(name: str) -> None:
    """Refuses what no attempt's id begins with.

    Raises:
        UsageFault: it is not 2 to 32 hex digits.
    """
    if not re.fullmatch(r"[0-9a-f]{2,32}", name):
        raise UsageFault(
            f"{name!r} is no attempt: write 2 to 32 hex digits of its id; the report of a sweep "
            "and `apiary serve` list them"
        )


def find_attempt(store: Store, name: str, sweep: str | None) -> AttemptName:
    """The attempt that a prefix means, in one sweep or, the latest first, in all.

    Raises:
        UsageFault: none or several are meant.
    """
    check_attempt(name)
    sweeps = list_sweeps(store)[::-1] if sweep is None else [find_sweep(store, sweep)]
    for each in sweeps:
        meant = sorted(set(_attempts(store, each, name)))
        if len(meant) == 1:
            return AttemptName(each, meant[0])
        if meant:
            shown = ", ".join(attempt[:12] for attempt in meant[:8])
            raise UsageFault(f"{name!r} may be any of {shown} of {each}: write more of it")
    raise UsageFault(f"{store.url}: no attempt that has run begins with {name!r}")


def find_planned(store: Store, name: str, sweep: str | None) -> Subject:
    """The attempt that a prefix means, run or not, in one sweep or, the latest first, in all.

    Raises:
        UsageFault: none or several are meant.
    """
    check_attempt(name)
    sweeps = list_sweeps(store)[::-1] if sweep is None else [find_sweep(store, sweep)]
    for each in sweeps:
        try:
            plan = plan_from_lock(read_locks(store, each)[-1])
        except (FormatError, LockError):
            if sweep is not None:
                raise
            continue  # The attempt may be of another one.
        meant = [planned for planned in plan.attempts if planned.attempt.startswith(name)]
        if len(meant) == 1:
            cell = next(cell for cell in plan.cells if cell.cell == meant[0].cell)
            return Subject(
                each,
                meant[0].attempt,
                cell.task.name,
                cell.condition.condition,
                meant[0].index,
            )
        if meant:
            shown = ", ".join(planned.attempt[:12] for planned in meant[:8])
            raise UsageFault(f"{name!r} may be any of {shown} of {each}: write more of it")
    raise UsageFault(f"{store.url}: no planned attempt begins with {name!r}")


def _attempts(store: Store, sweep: str, name: str) -> Iterator[str]:
    for kind in ("attempts", "tries"):
        for key in store.keys(f"sweeps/{sweep}/{kind}/{name[:2]}/{name}"):
            if match := _ATTEMPT.match(key):
                yield match[1]
