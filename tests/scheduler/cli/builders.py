"""A small world of manifests, and a driver that settles every attempt at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scheduler.plan import Plan
from scheduler.retry import DeadRetry
from scheduler.stop import StopSignal
from scheduler.view import ConditionView, Observer, SweepEnd, SweepView
from tests.scheduler.manifest.builders import write_world
from tests.scheduler.report.builders import record
from workers.contract.evidence import Evidence
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.storage import Store, open_store

Outcomes = Callable[[int], Iterable[Cause]]
"""The place of an attempt in the plan to the causes of its tries in order."""


def passes(_: int) -> Iterable[Cause]:
    """Every attempt passes at once."""
    return (Cause.NONE,)


@dataclass
class World:
    """A working directory with manifests and a store."""

    root: Path
    sweep: Path
    store_url: str

    @property
    def store(self) -> Store:
        """The store that commands use by default."""
        return open_store(self.store_url)


@dataclass
class FakeDriver:
    """Takes the place of ``run_sweep``: writes what nodes would have written."""

    outcomes: Outcomes = passes
    state: Any = "settled"
    idle: bool = False
    calls: list[dict[str, Any]] = field(default_factory=list)
    retries: list[DeadRetry | None] = field(default_factory=list)
    """What each call was told to do with dead attempts."""
    during: Callable[[StopSignal, Observer], None] = lambda stop, observer: None

    def __call__(
        self,
        plan: Plan,
        store_url: str,
        *,
        n_concurrent: int | None,
        ray_address: str | None,
        observer: Observer,
        stop: StopSignal,
        retry: DeadRetry | None = None,
        before_nodes: Callable[[], None] = lambda: None,
        **others: Any,
    ) -> SweepEnd:
        if self.idle:
            return SweepEnd(plan.sweep, "settled", f"nothing is open in {plan.sweep}", idle=True)
        before_nodes()
        told = {"n_concurrent": n_concurrent, "ray_address": ray_address, **others}
        self.calls.append({"plan": plan, **told})
        self.retries.append(retry)
        store = open_store(store_url)
        observer.moved(view_of(plan.sweep, waiting=len(plan.attempts)))
        for place, planned in enumerate(plan.attempts):
            for number, cause in enumerate(self.outcomes(place), 1):
                made = record_of(plan, planned.attempt, cause, number)
                write_try(store, made)
                observer.ended(made)
        self.during(stop, observer)
        observer.moved(view_of(plan.sweep, passed=len(plan.attempts)))
        return SweepEnd(plan.sweep, self.state, "Docker is gone" if self.state != "settled" else "")


def make_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose root is the working directory; no base image is chosen."""
    sweep = write_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("APIARY_BASE_IMAGE", raising=False)
    return World(tmp_path, sweep, f"file://{tmp_path / '.apiary'}")


def record_of(plan: Plan, attempt: str, cause: Cause, number: int, **changes: Any) -> TryRecord:
    """How a try of a planned attempt ended."""
    planned = next(each for each in plan.attempts if each.attempt == attempt)
    cell = next(each for each in plan.cells if each.cell == planned.cell)
    facts = {
        "sweep": plan.sweep,
        "index": planned.index,
        "cell": cell.cell,
        "condition": cell.condition.condition,
        "task": cell.task.name,
        "layer": cell.task.layer,
    }
    return record(cause, attempt, number, **{**facts, **changes})


def write_try(store: Store, made: TryRecord, evidence: Evidence | None = None) -> None:
    """Writes a try as a node does: evidence, record, and the commit if it counts."""
    prefix = try_prefix(made.sweep, made.attempt, made.try_)
    document = made.to_json().encode()
    if evidence is not None:
        store.put(f"{prefix}/evidence.json", evidence.to_json().encode())
    store.put(f"{prefix}/try.json", document)
    if made.verdict != "invalid":
        store.create(result_key(made.sweep, made.attempt), document)


def view_of(sweep: str, **changes: Any) -> SweepView:
    """A moment of a sweep with one condition."""
    condition = {
        "condition": "one",
        "waiting": 0,
        "running": 0,
        "passed": 0,
        "failed": 0,
        "invalid": 0,
        "invalid_tries": 0,
    }
    whole = {
        "elapsed_s": 61.0,
        "attempts_per_minute": 12.0,
        "eta_s": 125.0,
        "nodes": 1,
        "stopping": False,
    }
    condition.update({key: value for key, value in changes.items() if key in condition})
    whole.update({key: value for key, value in changes.items() if key in whole})
    return SweepView(sweep=sweep, conditions=(ConditionView(**condition),), **whole)
