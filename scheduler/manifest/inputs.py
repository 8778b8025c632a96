"""All that a sweep names, read and held against each other before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from scheduler.manifest.canary import CanaryInput, read_canaries
from scheduler.manifest.condition import LoadedCondition, load_condition, load_variants
from scheduler.manifest.endpoints import (
    LoadedEndpoints,
    find_endpoint_file,
    key_problem,
    missing_keys,
    open_endpoints,
)
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault, Place
from scheduler.manifest.files import nearest_path
from scheduler.manifest.made import played_condition, refuse_unplayable
from scheduler.manifest.programs import Programs, ProgramsError, read_programs, start_warnings
from scheduler.manifest.roots import shipped_endpoints
from scheduler.manifest.selection import ChosenTask, choose_tasks, narrowed
from scheduler.manifest.sweep import ConditionUse, LoadedSweep
from scheduler.manifest.task import CONFIG_NAME
from workers.contract.buzz import PROGRAMS, BuzzStack
from workers.contract.endpoint import Endpoint
from workers.contract.spec import Played
from workers.storage import StoreError, open_store

STORE_VARIABLE = "APIARY_STORE"
"""The environment variable that names a store where nothing else does."""


_USER = (
    "a model's agent runs as its image's user here; an oracle's solution runs as this one, and a "
    "USER line of the Dockerfile is honoured for both"
)


class CellInput(NamedTuple):
    """One task under one condition."""

    chosen: ChosenTask
    loaded: LoadedCondition
    attempts: int | None
    """k; null: that of the task's layer."""


@dataclass(frozen=True)
class SweepInputs:
    """What a sweep is made of, without a fault."""

    tasks: tuple[ChosenTask, ...]
    """Sorted by name."""
    conditions: tuple[LoadedCondition, ...]
    """In the order of the sweep."""
    cells: tuple[CellInput, ...]
    """By task, then in the order of the conditions; without canaries."""
    canaries: tuple[CanaryInput, ...]
    endpoints: dict[str, Endpoint]
    """Those that the conditions and the canaries use."""
    store: str
    warnings: tuple[str, ...]
    programs: Programs | None = None
    """Of agent ``buzz``, and of no other."""


def read_inputs(
    sweep: LoadedSweep,
    environment: Mapping[str, str],
    *,
    keys_needed: bool = True,
    known_stack: BuzzStack | None = None,
) -> SweepInputs:
    """Reads tasks, conditions, prompts and endpoints of a sweep.

    Args:
        sweep: from a sweep file or from flags.
        environment: where key variables must be set, and ``APIARY_STORE`` may be.
        keys_needed: whether a key variable that is not set is a fault; else it is a warning.
        known_stack: the programs of a sweep that grows, where no folder of them is named.

    Raises:
        ManifestError: with every fault of every file, and of them together.
    """
    faults = FaultList()
    tasks: tuple[ChosenTask, ...] = ()
    warnings: list[str] = []
    with faults.gathering():
        tasks, notes = choose_tasks(sweep)
        warnings.extend(notes)
    agent = sweep.file.agent
    played: Played | None = agent if agent == "oracle" or agent == "nop" else None
    if played is None:
        for each in tasks:
            if each.task.config.agent.user is not None:
                faults.add(ManifestFault(str(each.folder / CONFIG_NAME), None, "agent.user", _USER))
    conditions: list[LoadedCondition] = []
    runs: dict[str, tuple[dict[str, ChosenTask], int | None]] = {}
    if played is not None:
        with faults.gathering():
            refuse_unplayable(sweep, played, tasks)
        loaded = played_condition(played, played)
        conditions.append(loaded)
        runs[played] = ({each.task.name: each for each in tasks}, sweep.file.attempts)
        if sweep.file.conditions:
            warnings.append(f"agent {played} asks no model: the sweep's conditions are not run")
    for index, use in enumerate(sweep.file.conditions if played is None else ()):
        with faults.gathering():
            made = _conditions(sweep, index)
            kept = tasks
            if tasks:
                kept = narrowed(sweep, tasks, ("conditions", index), use.include, use.exclude)
            if tasks and not kept:
                warnings.append(f"{use.path}: runs none of these tasks")
                continue
            conditions.extend(made)
            run = ({each.task.name: each for each in kept}, _attempts(sweep, use))
            runs.update({each.condition.condition: run for each in made})
    if tasks and not conditions and not faults.faults:
        message = "no condition runs any of these tasks"
        faults.add(sweep.document.fault(("conditions",), message))
    canaries: tuple[CanaryInput, ...] = ()
    with faults.gathering():
        canaries = read_canaries(sweep, tasks)
    programs: Programs | None = None
    with faults.gathering():
        programs = _programs(sweep, known_stack)
    endpoints: LoadedEndpoints | None = None
    if played is None:
        with faults.gathering():
            _refuse_missing(sweep, ("endpoints",), sweep.endpoints_path)
            endpoints = open_endpoints(sweep.endpoints_path)
    asking = conditions if played is None else []
    for fault in _cross_faults(sweep, tasks, asking, endpoints, environment):
        faults.add(fault)
    for fault in _canary_faults(conditions, canaries, endpoints):
        faults.add(fault)
    used = _used_endpoints(conditions) if played is None else ()
    if agent == "reference" and endpoints is not None:
        for fault in _unspoken(endpoints, used):
            faults.add(fault)
    for fault in _key_faults(endpoints, used, environment):
        if keys_needed:
            faults.add(fault)
        else:
            warnings.append(str(fault))
    lacking = _owner_fault(sweep, environment) if played is None else None
    if lacking is not None and keys_needed:
        faults.add(lacking)
    elif lacking is not None:
        warnings.append(str(lacking))
    faults.settle()
    known = {} if endpoints is None else endpoints.endpoints
    for condition in conditions:
        warnings.extend(condition.warnings)
        if agent == "buzz":
            warnings.extend(start_warnings(condition, known))
    cells = tuple(
        CellInput(chosen, loaded, attempts)
        for chosen in tasks
        for loaded in conditions
        for kept, attempts in (runs[loaded.condition.condition],)
        if chosen.task.name in kept
    )
    idle = {each.task.name for each in tasks} - {each.chosen.task.name for each in cells}
    warnings.extend(f"task {name}: no condition runs it" for name in sorted(idle))
    return SweepInputs(
        tasks=tasks,
        conditions=tuple(conditions),
        cells=cells,
        canaries=canaries,
        endpoints={
            **{name: known[name] for name in used},
            **{each.endpoint_name: each.endpoint for each in canaries if each.endpoint},
        },
        store=store_url_of(sweep, environment),
        warnings=tuple(warnings),
        programs=programs,
    )


def _conditions(sweep: LoadedSweep, index: int) -> tuple[LoadedCondition, ...]:
    """The conditions of one item: one, or every combination of what it varies."""
    use, path = sweep.file.conditions[index], sweep.condition_paths[index]
    _refuse_missing(sweep, ("conditions", index), path)
    if not use.vary:
        return (load_condition(path, sweep.manifests),)
    place = ("conditions", index, "vary")
    return load_variants(path, sweep.manifests, sweep.document, place, use.vary)


def _programs(sweep: LoadedSweep, known: BuzzStack | None) -> Programs | None:
    """The programs of agent ``buzz``; None: another agent works."""
    folder = sweep.programs_path
    if sweep.file.agent != "buzz":
        if folder is not None:
            message = f"agent {sweep.file.agent} has no programs of its own: they are agent buzz's"
            raise ManifestError([sweep.document.fault(("agent_bin_dir",), message)])
        return None
    if folder is None:
        if known is not None:
            return Programs(known, {})
        message = (
            f"agent buzz needs the folder with Linux builds of {', '.join(PROGRAMS)}: name it in "
            "agent_bin_dir, or with --agent-bin-dir"
        )
        raise ManifestError([sweep.document.fault(("agent",), message)])
    try:
        return read_programs(folder)
    except ProgramsError as error:
        place = ("agent_bin_dir",)
        faults = [sweep.document.fault(place, problem) for problem in error.problems]
        raise ManifestError(faults) from error


def _unspoken(endpoints: LoadedEndpoints, used: Iterable[str]) -> Iterator[ManifestFault]:
    """Endpoints whose provider only the production stack can ask."""
    for name in used:
        endpoint = endpoints.endpoints.get(name)
        if endpoint is not None and endpoint.provider == "databricks":
            message = "only agent buzz speaks to provider databricks; databricks_v2 serves both"
            yield endpoints.document.fault((name, "provider"), message)


def _attempts(sweep: LoadedSweep, use: ConditionUse) -> int | None:
    """K of an item's cells; the command line's is every condition's."""
    if ("attempts",) in sweep.document.flags:
        return sweep.file.attempts
    return use.attempts or sweep.file.attempts


def _canary_faults(
    conditions: Iterable[LoadedCondition],
    canaries: Iterable[CanaryInput],
    endpoints: LoadedEndpoints | None,
) -> Iterator[ManifestFault]:
    """Names that canaries take for themselves."""
    for canary in canaries:
        name = canary.endpoint_name
        for loaded in conditions:
            if loaded.condition.condition == name:
                yield loaded.document.fault(("condition",), f"{name!r} is a canary's name")
        if endpoints is not None and name in endpoints.endpoints:
            yield endpoints.document.fault((name,), f"{name!r} is the endpoint of a canary")


def store_url_of(sweep: LoadedSweep, environment: Mapping[str, str]) -> str:
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
    yield from _double_conditions(conditions)
    if endpoints is not None:
        for condition in conditions:
            yield from _lacking_endpoints(condition, endpoints, shipped_endpoints(sweep.manifests))


def _key_faults(
    endpoints: LoadedEndpoints | None, used: Iterable[str], environment: Mapping[str, str]
) -> tuple[ManifestFault, ...]:
    return () if endpoints is None else missing_keys(endpoints, used, environment)


def _owner_fault(sweep: LoadedSweep, environment: Mapping[str, str]) -> ManifestFault | None:
    """Why the key of a deployment's owner cannot be had; None: it can, or none is needed."""
    relay = sweep.file.relay
    if relay == "embedded":
        return None
    what = "the secret key of the relay's owner"
    message = key_problem(relay.owner_key_env, what, environment)
    place = ("relay", "owner_key_env")
    return None if message is None else sweep.document.fault(place, message)


def _store_faults(sweep: LoadedSweep, environment: Mapping[str, str]) -> Iterator[ManifestFault]:
    try:
        open_store(store_url_of(sweep, environment))
    except StoreError as error:
        if sweep.file.store is None:
            yield ManifestFault("environment", None, STORE_VARIABLE, str(error))
        else:
            yield sweep.document.fault(("store",), str(error))


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
