"""Stores with sweeps as nodes would have left them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scheduler.lock import lock_of
from scheduler.manifest import Overrides, load_sweep
from scheduler.plan import Plan, make_plan
from tests.layout.tree import ROOT
from tests.scheduler.cli.builders import write_try
from tests.scheduler.report.builders import record
from tests.scheduler.report.evidence import conversation
from workers.contract.evidence import Evidence
from workers.contract.outcome import Cause
from workers.storage import Store, open_store

START = datetime(2026, 1, 1, tzinfo=UTC)

CAUSES: Sequence[tuple[Cause, ...]] = (
    (Cause.NONE,),
    (Cause.NONE,),
    (Cause.WRONG,),
    (Cause.CONTAINER_LOST, Cause.NONE),
    (Cause.NO_REPLY,),
    (Cause.NONE,),
    (Cause.RATE_LIMITED, Cause.NONE),
    (Cause.AGENT_TIMEOUT,),
    (Cause.NONE,),
    (Cause.NONE,),
    (Cause.NONE,),
    (Cause.WRONG,),
    (Cause.RATE_LIMITED, Cause.RATE_LIMITED, Cause.RATE_LIMITED),
)
"""What attempts come to, in turn."""


def large_store(
    folder: Path,
    attempts: int,
    *,
    settled: int | None = None,
    started_at: datetime = START,
    evidence: Callable[[int], Evidence | None] = lambda place: conversation(),
) -> tuple[Store, Plan]:
    """A sweep of ten tasks under five conditions, ``attempts`` of each cell.

    Args:
        folder: of the store.
        attempts: k of each cell.
        settled: how many attempts have ended; null: all.
        started_at: of the sweep.
        evidence: place in the plan to what was said; null: none was taken.
    """
    url = f"file://{folder}"
    overrides = Overrides(attempts=attempts, store=url)
    loaded = load_sweep(ROOT / "manifests/sweeps/large-k.yaml", overrides)
    plan = make_plan(loaded, started_at=started_at, environment={})
    store = open_store(url)
    store.create(f"sweeps/{plan.sweep}/lock-1.json", lock_of(plan).to_json().encode())
    cells = {each.cell: each for each in plan.cells}
    prices = {name: 0.002 * number for number, name in enumerate(plan.conditions, 1)}
    for place, planned in enumerate(plan.attempts[:settled]):
        cell = cells[planned.cell]
        for number, cause in enumerate(CAUSES[place % len(CAUSES)], 1):
            made = record(
                cause,
                planned.attempt,
                number,
                sweep=plan.sweep,
                index=planned.index,
                cell=cell.cell,
                condition=cell.condition.condition,
                task=cell.task.name,
                layer=cell.task.layer,
                node=f"node-{place % 3}",
                started_at=moment(started_at, place // 6),
                ended_at=moment(started_at, place // 6 + 1.5),
                usage={"calls": 3, "cost_usd": prices[cell.condition.condition]},
                dimensions={"threaded": 1.0, "mentioned": 0.0 if cause is Cause.WRONG else 1.0},
            )
            write_try(store, made, evidence(place))
    return store, plan


def moment(start: datetime, seconds: float) -> str:
    """RFC 3339, so many seconds after a start."""
    return (start + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
