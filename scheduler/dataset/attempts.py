"""Attempts with known results, made by the driver like those of any sweep.

The conditions are shipped ones whose model is scripted; what each must come to stands in a
task's proof. Nothing is simulated: containers, relay, gateway and verifier are the real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from scheduler.dataset.proof import EXPECTED
from scheduler.driver import run_sweep
from scheduler.lock import write_lock
from scheduler.manifest import Overrides, sweep_from_flags
from scheduler.manifest.roots import shipped_endpoints
from scheduler.plan import BaseImage, Plan, make_plan
from scheduler.stop import StopSignal
from scheduler.view import Observer, SweepEnd, SweepView
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord
from workers.storage import open_store

SWEEP_NAME = "tasks-check"
ENDPOINTS = "scripted.json"

Cell = tuple[str, str]
"""A task's bare name and a condition's name."""


@dataclass
class Records:
    """An observer that keeps how every attempt stands: its last try."""

    shown: Observer | None = None
    """Is told everything too."""
    by_cell: dict[Cell, TryRecord] = field(default_factory=dict)

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        if self.shown is not None:
            self.shown.moved(view)

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        self.by_cell[record.task.rpartition("/")[2], record.condition] = record
        if self.shown is not None:
            self.shown.ended(record)

    def note(self, text: str) -> None:
        """See ``Observer``."""
        if self.shown is not None:
            self.shown.note(text)


def plan_attempts(
    folders: Iterable[Path],
    dataset: Path,
    manifests: Path,
    store: str,
    base_image: BaseImage | None,
    *,
    conditions: Sequence[Path] = (),
    endpoints: Path | None = None,
) -> Plan:
    """One attempt of each of some tasks under each of the scripted conditions.

    Args:
        folders: of tasks that have a fixture.
        dataset: the folder that they are in.
        manifests: where conditions and the kit are.
        store: URL of the store for what is left of them.
        base_image: what task builds start from.
        conditions: others than the shipped ones of every check.
        endpoints: the file of their endpoints.

    Raises:
        ManifestError: a task or a condition has faults.
    """
    shipped = [manifests / "conditions" / f"{name}.yaml" for name in EXPECTED]
    overrides = Overrides(
        name=SWEEP_NAME,
        attempts=1,
        include=tuple(folder.name for folder in folders),
        endpoint_config=str(endpoints or shipped_endpoints(manifests) / ENDPOINTS),
        network="sealed",
        store=store,
    )
    return make_plan(
        sweep_from_flags(dataset, tuple(conditions or shipped), overrides, manifests),
        started_at=datetime.now(UTC),
        environment={},
        base_image=base_image,
    )


def only(plan: Plan, wanted: Iterable[Cell]) -> Plan:
    """A plan without the attempts of all other cells."""
    names = set(wanted)
    cells = {
        cell.cell for cell in plan.cells if (cell.task.bare_name, cell.condition.condition) in names
    }
    return replace(plan, attempts=tuple(each for each in plan.attempts if each.cell in cells))


def run_attempts(
    plan: Plan, stop: StopSignal, shown: Observer | None = None
) -> tuple[SweepEnd, Records]:
    """Runs a plan's attempts to their ends; blocks; called in the main thread.

    Args:
        plan: of ``plan_attempts``.
        stop: the operator's wish.
        shown: is told of the attempts as they go.

    Raises:
        DriverError: Ray could not be had.
        LockError: a task changed since it was planned.
        StoreError: the store refused.
    """
    records = Records(shown)
    write_lock(open_store(plan.spec.store), plan)
    end = run_sweep(
        plan,
        plan.spec.store,
        n_concurrent=None,
        ray_address=None,
        observer=records,
        stop=stop,
    )
    return end, records


def came_to(record: TryRecord) -> str:
    """What an attempt came to, in the words of a proof where it has one."""
    if record.verdict is Verdict.PASS:
        return "pass"
    if record.verdict is Verdict.FAIL:
        return record.cause.value
    return f"invalid: {record.blame} {record.cause}"


def lost_dimensions(record: TryRecord) -> frozenset[str]:
    """The dimensions that are not 1."""
    return frozenset(name for name, value in record.dimensions.items() if value < 1.0)


def is_harness_fault(record: TryRecord) -> bool:
    """Whether an attempt says nothing of its task: machine, harness or operator failed."""
    return record.verdict is Verdict.INVALID and record.blame != "task"
