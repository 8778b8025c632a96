"""Stage 2, plan: LoadedSweep -> Plan.

Everything that a sweep names is read and held against everything else here, before anything
starts: tasks against layer and globs, conditions against prompts and endpoints, endpoints
against the environment. The cells are tasks × conditions; their attempts are put in the
order in which they should start, round robin over conditions, so that a sweep that is cut
short has seen all of them equally.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from scheduler.manifest import (
    ChosenTask,
    FaultList,
    LoadedCondition,
    LoadedEndpoints,
    LoadedSweep,
    ManifestFault,
    Scoring,
    SweepBudget,
    choose_tasks,
    find_endpoint_file,
    load_condition,
    missing_keys,
    open_endpoints,
)
from scheduler.manifest.roots import shipped_endpoints
from workers.contract.base import Strict
from workers.contract.spec import CellSpec, SweepSpec, attempt_id, cell_id
from workers.contract.task import DEFAULT_ATTEMPTS, Task
from workers.storage import StoreError, open_store


STORE_VARIABLE = "APIARY_STORE"
"""The environment variable that names a store where nothing else does."""


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
) -> Plan:
    """Reads all that a sweep names, and lays out its cells and attempts.

    Args:
        sweep: from a sweep file or from flags.
        started_at: aware; with the name it makes the sweep's id.
        environment: where key variables must be set, and ``APIARY_STORE`` may be.
        base_image: what task builds are given as ``BASE_IMAGE``.
        n_concurrent: trials at once on a node; null: by its cores and memory.

    Raises:
        ManifestError: with every fault of every file, and of them together.
        ValueError: ``started_at`` is naive.
    """
    if started_at.tzinfo is None:
        raise ValueError("started_at must be an aware time")
    start = started_at.astimezone(UTC)
    tasks, conditions, endpoints, warnings = _read_all(sweep, environment)
    spec = SweepSpec(
        sweep=f"{sweep.file.name}-{start:%Y%m%dT%H%M%SZ}",
        store=store_url(sweep, environment),
        agent=sweep.file.agent,
        relay=sweep.file.relay,
        network=sweep.file.network,
        base_image=None if base_image is None else base_image.reference,
        seed=sweep.file.seed,
        limits=sweep.file.limits,
        endpoints={name: endpoints.endpoints[name] for name in _used_endpoints(conditions)},
    )
    cells = tuple(_cell(chosen.task, condition) for chosen in tasks for condition in conditions)
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
        archives={each.task.digest: TaskSource(each.folder, each.kit) for each in tasks},
        warnings=warnings,
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


def store_url(sweep: LoadedSweep, environment: Mapping[str, str]) -> str:
    """The store of a sweep: its own, else ``APIARY_STORE``, else ``.apiary`` where we are."""
    if sweep.file.store is not None:
        return sweep.file.store
    return environment.get(STORE_VARIABLE) or Path(".apiary").absolute().as_uri()


def _read_all(
    sweep: LoadedSweep, environment: Mapping[str, str]
) -> tuple[tuple[ChosenTask, ...], tuple[LoadedCondition, ...], LoadedEndpoints, tuple[str, ...]]:
    faults = FaultList()
    tasks: tuple[ChosenTask, ...] = ()
    warnings: list[str] = []
    with faults.gathering():
        tasks, notes = choose_tasks(sweep)
        warnings.extend(notes)
    conditions: list[LoadedCondition] = []
    for path in sweep.condition_paths:
        with faults.gathering():
            conditions.append(load_condition(path, sweep.manifests))
    endpoints: LoadedEndpoints | None = None
    with faults.gathering():
        endpoints = open_endpoints(sweep.endpoints_path)
    for fault in _cross_faults(sweep, tasks, conditions, endpoints, environment):
        faults.add(fault)
    faults.settle()
    if endpoints is None:
        raise AssertionError("endpoints without a fault were read")
    for condition in conditions:
        warnings.extend(condition.warnings)
    if sweep.file.budget != SweepBudget():
        warnings.append("budget: recorded in the lock; nothing stops a sweep for it yet")
    return tasks, tuple(conditions), endpoints, tuple(warnings)


def _cross_faults(
    sweep: LoadedSweep,
    tasks: Iterable[ChosenTask],
    conditions: list[LoadedCondition],
    endpoints: LoadedEndpoints | None,
    environment: Mapping[str, str],
) -> Iterator[ManifestFault]:
    yield from _store_faults(sweep, environment)
    yield from _harbor_faults(tasks)
    yield from _double_conditions(conditions)
    if endpoints is not None:
        for condition in conditions:
            yield from _lacking_endpoints(condition, endpoints, shipped_endpoints(sweep.manifests))
        yield from missing_keys(endpoints, _used_endpoints(conditions), environment)


def _store_faults(sweep: LoadedSweep, environment: Mapping[str, str]) -> Iterator[ManifestFault]:
    try:
        open_store(store_url(sweep, environment))
    except StoreError as error:
        if sweep.file.store is None:
            yield ManifestFault("environment", None, STORE_VARIABLE, str(error))
        else:
            yield sweep.document.fault(("store",), str(error))


def _harbor_faults(tasks: Iterable[ChosenTask]) -> Iterator[ManifestFault]:
    for chosen in tasks:
        if chosen.task.fixture is None:
            message = (
                "without this file it is a Harbor task, graded by its container's state; "
                "this version runs Buzz-native tasks only"
            )
            yield ManifestFault(str(chosen.folder / "fixture.yaml"), None, "", message)


def _double_conditions(conditions: Iterable[LoadedCondition]) -> Iterator[ManifestFault]:
    names: dict[str, LoadedCondition] = {}
    for loaded in conditions:
        name = loaded.condition.condition
        other = names.setdefault(name, loaded)
        if other is not loaded:
            message = f"{other.path} is called {name!r} too: results are told apart by this name"
            yield loaded.document.fault(("condition",), message)


def _lacking_endpoints(
    loaded: LoadedCondition, endpoints: LoadedEndpoints, shipped: Path
) -> Iterator[ManifestFault]:
    for index, entry in enumerate(loaded.condition.roster):
        if entry.endpoint in endpoints.endpoints:
            continue
        there = ", ".join(sorted(endpoints.endpoints)) or "none"
        message = f"{endpoints.path} has no endpoint {entry.endpoint!r} (it has: {there})"
        other = find_endpoint_file(entry.endpoint, shipped)
        if other is not None:
            message += f"; {other} has it: use --endpoint-config {other}"
        yield loaded.document.fault(("roster", index, "endpoint"), message)


def _used_endpoints(conditions: Iterable[LoadedCondition]) -> tuple[str, ...]:
    names = (name for loaded in conditions for name in loaded.condition.endpoints)
    return tuple(dict.fromkeys(names))


def _cell(task: Task, loaded: LoadedCondition) -> CellSpec:
    return CellSpec(
        cell=cell_id(loaded.condition.digest, task.digest),
        task=task,
        condition=loaded.condition,
        prompts=loaded.prompts,
    )
