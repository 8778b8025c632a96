"""Stage 2, plan: LoadedSweep -> Plan.

The cells of a sweep are its tasks × its conditions. Their attempts are put in the order in
which they should start, round robin over conditions, so that a sweep that is cut short has
seen all of them equally.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from scheduler.manifest import LoadedCondition, LoadedSweep, Scoring, SweepBudget, read_inputs
from workers.contract.base import Strict
from workers.contract.spec import CellSpec, SweepSpec, attempt_id, cell_id
from workers.contract.task import DEFAULT_ATTEMPTS, Task


class PlannedAttempt(NamedTuple):
    """One attempt; a tuple, since a sweep may have 100,000."""

    attempt: str
    cell: str
    # Hides the method of that name: an attempt's index is called so in every format.
    index: int  # type: ignore[assignment]
    """Which of the cell's k attempts, from 0."""


class TaskSource(NamedTuple):
    """The folders that a task's archive is packed from."""

    folder: Path
    kit: Path


class BaseImage(Strict):
    """The image that task builds start from."""

    reference: str
    """As builds name it."""
    digest: str | None
    """Of its contents; null where the engine was not asked."""


class Profile(Strict):
    """How much of the machines a sweep was meant to use."""

    cpus: Annotated[int, Field(ge=1)] | None
    """Of the machine on which the sweep was planned."""
    n_concurrent: Annotated[int, Field(ge=1)] | None = None
    """``--n-concurrent``; null: by cores and memory."""


@dataclass(frozen=True)
class Plan:
    """What would run; nothing of it has started."""

    name: str
    started_at: str
    """RFC 3339, UTC, whole seconds."""
    spec: SweepSpec
    cells: tuple[CellSpec, ...]
    """By task name, then in the order of the sweep's conditions."""
    counts: Mapping[str, int]
    """Cell to its k."""
    attempts: tuple[PlannedAttempt, ...]
    """In the order in which they should start."""
    scoring: Scoring
    budget: SweepBudget
    base_image: BaseImage | None
    profile: Profile
    archives: Mapping[str, TaskSource] = field(default_factory=dict)
    """Task digest to its folders; empty where the store has the archives already."""
    warnings: tuple[str, ...] = ()

    @property
    def sweep(self) -> str:
        """The sweep's id."""
        return self.spec.sweep

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task once."""
        return tuple({cell.task.digest: cell.task for cell in self.cells}.values())

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of the conditions, each once."""
        return tuple(dict.fromkeys(cell.condition.condition for cell in self.cells))


def make_plan(
    sweep: LoadedSweep,
    *,
    started_at: datetime,
    environment: Mapping[str, str],
    base_image: BaseImage | None = None,
    n_concurrent: int | None = None,
    keys_needed: bool = True,
) -> Plan:
    """Reads all that a sweep names, and lays out its cells and attempts.

    Args:
        sweep: from a sweep file or from flags.
        started_at: aware; with the name it makes the sweep's id.
        environment: where key variables must be set, and ``APIARY_STORE`` may be.
        base_image: what task builds are given as ``BASE_IMAGE``.
        n_concurrent: trials at once on a node; null: by its cores and memory.
        keys_needed: whether a key variable that is not set is a fault; else it is a warning.

    Raises:
        ManifestError: with every fault of every file, and of them together.
        ValueError: ``started_at`` is naive.
    """
    if started_at.tzinfo is None:
        raise ValueError("started_at must be an aware time")
    start = started_at.astimezone(UTC)
    inputs = read_inputs(sweep, environment, keys_needed=keys_needed)
    spec = SweepSpec(
        sweep=f"{sweep.file.name}-{start:%Y%m%dT%H%M%SZ}",
        store=inputs.store,
        agent=sweep.file.agent,
        relay=sweep.file.relay,
        network=sweep.file.network,
        base_image=None if base_image is None else base_image.reference,
        seed=sweep.file.seed,
        limits=sweep.file.limits,
        endpoints=inputs.endpoints,
    )
    cells = tuple(
        _cell(chosen.task, condition) for chosen in inputs.tasks for condition in inputs.conditions
    )
    counts = {cell.cell: sweep.file.attempts or default_count(cell.task) for cell in cells}
    return Plan(
        name=sweep.file.name,
        started_at=f"{start:%Y-%m-%dT%H:%M:%SZ}",
        spec=spec,
        cells=cells,
        counts=counts,
        attempts=tuple(lay_out(spec.sweep, cells, counts)),
        scoring=sweep.file.scoring,
        budget=sweep.file.budget,
        base_image=base_image,
        profile=Profile(cpus=os.cpu_count(), n_concurrent=n_concurrent),
        archives={each.task.digest: TaskSource(each.folder, each.kit) for each in inputs.tasks},
        warnings=inputs.warnings,
    )


def lay_out(
    sweep: str, cells: Iterable[CellSpec], counts: Mapping[str, int]
) -> Iterator[PlannedAttempt]:
    """Attempts in order: every cell's first, then every cell's second, and so on.

    The cells of one task stand side by side, so that conditions take turns.
    """
    ids = [(cell.cell, cell.condition.digest, cell.task.digest) for cell in cells]
    for index in range(max(counts.values(), default=0)):
        for cell, condition, task in ids:
            if index < counts[cell]:
                yield PlannedAttempt(attempt_id(sweep, condition, task, index), cell, index)


def default_count(task: Task) -> int:
    """K of a task where the sweep does not say: that of its layer."""
    return DEFAULT_ATTEMPTS[task.layer]


def _cell(task: Task, loaded: LoadedCondition) -> CellSpec:
    return CellSpec(
        cell=cell_id(loaded.condition.digest, task.digest),
        task=task,
        condition=loaded.condition,
        prompts=loaded.prompts,
    )
