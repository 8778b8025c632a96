"""All that a sweep names, read and held against each other before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler.manifest.condition import LoadedCondition, load_condition
from scheduler.manifest.endpoints import (
    LoadedEndpoints,
    find_endpoint_file,
    missing_keys,
    open_endpoints,
)
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault, Place
from scheduler.manifest.files import nearest_path
from scheduler.manifest.roots import shipped_endpoints
from scheduler.manifest.selection import ChosenTask, choose_tasks
from scheduler.manifest.sweep import LoadedSweep, SweepBudget
from workers.contract.endpoint import Endpoint
from workers.storage import StoreError, open_store

STORE_VARIABLE = "APIARY_STORE"
"""The environment variable that names a store where nothing else does."""


@dataclass(frozen=True)
class SweepInputs:
    """What a sweep is made of, without a fault."""

    tasks: tuple[ChosenTask, ...]
    """Sorted by name."""
    conditions: tuple[LoadedCondition, ...]
    """In the order of the sweep."""
    endpoints: dict[str, Endpoint]
    """Those that the conditions use."""
    store: str
    warnings: tuple[str, ...]


def read_inputs(
    sweep: LoadedSweep, environment: Mapping[str, str], *, keys_needed: bool = True
) -> SweepInputs:
    """Reads tasks, conditions, prompts and endpoints of a sweep.

    Args:
        sweep: from a sweep file or from flags.
        environment: where key variables must be set, and ``APIARY_STORE`` may be.
        keys_needed: whether a key variable that is not set is a fault; else it is a warning.

    Raises:
        ManifestError: with every fault of every file, and of them together.
    """
    faults = FaultList()
    tasks: tuple[ChosenTask, ...] = ()
    warnings: list[str] = []
    with faults.gathering():
        tasks, notes = choose_tasks(sweep)
        warnings.extend(notes)
    conditions: list[LoadedCondition] = []
    for index, path in enumerate(sweep.condition_paths):
        with faults.gathering():
            _refuse_missing(sweep, ("conditions", index), path)
            conditions.append(load_condition(path, sweep.manifests))
    endpoints: LoadedEndpoints | None = None
    with faults.gathering():
        _refuse_missing(sweep, ("endpoints",), sweep.endpoints_path)
        endpoints = open_endpoints(sweep.endpoints_path)
    for fault in _cross_faults(sweep, tasks, conditions, endpoints, environment):
        faults.add(fault)
    used = _used_endpoints(conditions)
    for fault in _key_faults(endpoints, used, environment):
        if keys_needed:
            faults.add(fault)
        else:
            warnings.append(str(fault))
    faults.settle()
    if endpoints is None:
        raise AssertionError("endpoints without a fault were read")
    for condition in conditions:
        warnings.extend(condition.warnings)
    if sweep.file.budget != SweepBudget():
        warnings.append("budget: recorded in the lock; nothing stops a sweep for it yet")
    return SweepInputs(
        tasks=tasks,
        conditions=tuple(conditions),
        endpoints={name: endpoints.endpoints[name] for name in used},
        store=_store_url(sweep, environment),
        warnings=tuple(warnings),
    )


def _store_url(sweep: LoadedSweep, environment: Mapping[str, str]) -> str:
    """The sweep's own, else ``APIARY_STORE``, else ``.apiary`` in the working directory."""
    if sweep.file.store is not None:
        return sweep.file.store
    return environment.get(STORE_VARIABLE) or Path(".apiary").absolute().as_uri()


def _refuse_missing(sweep: LoadedSweep, place: Place, path: Path) -> None:
    """Points at who names a file that is not there; there is no line of its own to show."""
    if not os.path.lexists(path):
        fault = sweep.document.fault(place, f"there is no file {path}", nearest_path(path))
        raise ManifestError([fault])


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


def _key_faults(
    endpoints: LoadedEndpoints | None, used: Iterable[str], environment: Mapping[str, str]
) -> tuple[ManifestFault, ...]:
    return () if endpoints is None else missing_keys(endpoints, used, environment)


def _store_faults(sweep: LoadedSweep, environment: Mapping[str, str]) -> Iterator[ManifestFault]:
    try:
        open_store(_store_url(sweep, environment))
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
