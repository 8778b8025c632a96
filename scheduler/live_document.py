"""A moment of a sweep as the document that its driver publishes. Pure but for time and host."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from scheduler.live_format import (
    DETAIL_MAX,
    RUNNING_SHOWN,
    LiveCondition,
    LiveExample,
    LiveFailure,
    LiveNode,
    LiveRunning,
    LiveSpending,
    LiveState,
    LiveSweep,
)
from scheduler.view import RunningOn, SweepView
from workers.contract.outcome import Blame
from workers.contract.result import TryRecord

Told = Mapping[tuple[str, str], tuple[int, tuple[LiveExample, ...]]]
"""By blame and cause: tries under this driver, and the newest of them."""


class Named(NamedTuple):
    """What an attempt is called."""

    task: str
    condition: str
    place: int
    """Which of the cell's attempts."""


class Shown(NamedTuple):
    """What was known at one moment."""

    view: SweepView
    running: tuple[RunningOn, ...]
    told: Told
    notes: tuple[str, ...]


class Made(NamedTuple):
    """Whose document it is, and which."""

    sweep: str
    generation: int
    number: int
    state: LiveState
    reason: str


def make_document(
    made: Made, shown: Shown, spending: LiveSpending, name_of: Callable[[str], Named | None]
) -> LiveSweep:
    """The document of one moment."""
    view = shown.view
    return LiveSweep(
        number=made.number,
        sweep=made.sweep,
        generation=made.generation,
        host=platform.node(),
        time=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        state=made.state,
        reason=made.reason,
        stopping=view.stopping,
        elapsed_s=round(view.elapsed_s, 1),
        attempts_per_minute=round(view.attempts_per_minute, 2),
        eta_s=None if view.eta_s is None else round(view.eta_s, 1),
        conditions=tuple(
            LiveCondition(
                condition=each.condition,
                waiting=each.waiting,
                running=each.running,
                passed=each.passed,
                failed=each.failed,
                invalid=each.invalid,
                invalid_tries=each.invalid_tries,
            )
            for each in view.conditions
        ),
        spending=spending,
        failures=failures(view, shown.told),
        nodes=tuple(
            LiveNode(
                node=each.node,
                running=each.running,
                free_slots=each.free_slots,
                draining=each.draining[:DETAIL_MAX],
            )
            for each in view.node_views
        ),
        lost_nodes=view.lost_nodes,
        parked_endpoints=view.parked_endpoints,
        throttled_endpoints=view.throttled_endpoints,
        budget_share=view.budget_share,
        running=tuple(islice(_named(shown.running, name_of), RUNNING_SHOWN)),
        notes=shown.notes,
    )


def _named(
    running: Iterable[RunningOn], name_of: Callable[[str], Named | None]
) -> Iterator[LiveRunning]:
    for node, each in running:
        name = name_of(each.attempt)
        if name is not None:
            yield LiveRunning.model_validate(
                {
                    "attempt": each.attempt,
                    "try": str(each.epoch),
                    "index": name.place,
                    "task": name.task,
                    "condition": name.condition,
                    "node": node,
                    "phase": each.phase,
                }
            )


def example_of(record: TryRecord) -> LiveExample:
    """A try that is no pass, as it is shown."""
    return LiveExample.model_validate(
        {
            "attempt": record.attempt,
            "try": record.try_,
            "index": record.index,
            "task": record.task,
            "condition": record.condition,
            "node": record.node,
            "ended_at": record.ended_at,
            "detail": record.detail[:DETAIL_MAX],
        }
    )


def failures(view: SweepView, told: Told) -> tuple[LiveFailure, ...]:
    """What is no pass by blame and cause: as attempts stand, and as tries of this driver ended."""
    standing: Counter[tuple[str, str]] = Counter()
    for key, count in view.standings.items():
        if key.blame not in ("", Blame.NONE.value):
            standing[key.blame, key.cause] += count
    order = {blame.value: place for place, blame in enumerate(Blame)}
    found = sorted(
        standing.keys() | told.keys(), key=lambda key: (order.get(key[0], 99), -standing[key], key)
    )
    return tuple(
        LiveFailure(
            blame=blame,
            cause=cause,
            attempts=standing[blame, cause],
            tries=told.get((blame, cause), (0, ()))[0],
            examples=told.get((blame, cause), (0, ()))[1],
        )
        for blame, cause in found
    )


def same(one: LiveSweep, other: LiveSweep) -> bool:
    """Whether nothing moved between two documents."""
    still = {"number": 0, "time": "", "elapsed_s": 0.0, "attempts_per_minute": 0.0, "eta_s": None}
    return one.model_copy(update=still) == other.model_copy(update=still)
