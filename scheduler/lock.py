"""The lock of a sweep: all that was fixed at its start, as the store keeps it.

A sweep is resumed from its last lock alone, on any machine that reaches the store. A lock
is created once and never replaced; a sweep that grows gets another one with the next
number. It names key variables and never holds a key.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata

from scheduler.lock_format import Lock, LockedCondition, LockedEndpoint, Versions
from scheduler.manifest import ManifestError, ManifestFault
from scheduler.plan import Plan, lay_out
from workers.contract.base import FormatError
from workers.contract.endpoint import Endpoint
from workers.contract.spec import CellSpec, SweepSpec, cell_id
from workers.contract.task import Task
from workers.contract.task_folder import (
    TaskFolderError,
    archive_key,
    entries_digest,
    pack_entries,
    read_folder,
)
from workers.storage.interface import Store

__all__ = [
    "Lock",
    "LockError",
    "installed_versions",
    "lock_key",
    "lock_of",
    "plan_from_lock",
    "read_lock",
    "read_locks",
    "write_lock",
]

_LOCK_KEY = re.compile(r"sweeps/[^/]+/lock-([1-9][0-9]*)\.json")


class LockError(Exception):
    """A lock cannot be written or is not there; the message says why."""


def lock_key(sweep: str, number: int) -> str:
    """The store's key of a lock."""
    return f"sweeps/{sweep}/lock-{number}.json"


def lock_of(plan: Plan) -> Lock:
    """The first lock of a planned sweep."""
    spec = plan.spec
    conditions = {cell.condition.digest: cell.condition for cell in plan.cells}
    prompts = {digest: text for cell in plan.cells for digest, text in cell.prompts.items()}
    return Lock(
        sweep=spec.sweep,
        name=plan.name,
        started_at=plan.started_at,
        store=spec.store,
        agent=spec.agent,
        relay=spec.relay,
        network=spec.network,
        seed=spec.seed,
        scoring=plan.scoring,
        limits=spec.limits,
        budget=plan.budget,
        base_image=plan.base_image,
        profile=plan.profile,
        versions=installed_versions(),
        tasks=plan.tasks,
        conditions=tuple(
            LockedCondition(digest=digest, manifest=condition)
            for digest, condition in conditions.items()
        ),
        prompts=prompts,
        endpoints={name: _locked_endpoint(each) for name, each in spec.endpoints.items()},
        attempts=dict(plan.counts),
    )


def write_lock(store: Store, plan: Plan) -> Lock:
    """Uploads the archives of a plan's tasks, then its first lock; blocks.

    In this order, so that a lock in the store means that the sweep can run from it.

    Raises:
        LockError: a task's folder changed since it was planned, or the store has another
            sweep of this id.
        StoreError: the store refused.
    """
    for digest in plan.archives:
        key = archive_key(digest)
        if not store.exists(key):
            store.create(key, _archive(plan, digest))
    lock = lock_of(plan)
    key, data = lock_key(plan.sweep, lock.number), lock.to_json().encode()
    if not store.create(key, data):
        # Even if it is the same to the byte: it is another's, whose driver may be at work.
        raise LockError(f"{key}: a sweep of this name started in the same second; start again")
    return lock


def read_locks(store: Store, sweep: str) -> list[Lock]:
    """All locks of a sweep by number; the last one is in force; blocks.

    Raises:
        LockError: there is none.
        FormatError: one is not of this version's format.
        StoreError: the store refused.
    """
    numbers = []
    for key in store.keys(f"sweeps/{sweep}/lock-"):
        match = _LOCK_KEY.fullmatch(key)
        if match is not None:
            numbers.append(int(match[1]))
    if not numbers:
        raise LockError(f"{store.url}: there is no lock of a sweep {sweep!r}")
    return [read_lock(store, sweep, number) for number in sorted(numbers)]


def read_lock(store: Store, sweep: str, number: int) -> Lock:
    """One lock; blocks.

    Raises:
        FormatError: it is not of this version's format, or not where it belongs.
        StoreError: the store refused, or has none of this number.
    """
    key = lock_key(sweep, number)
    lock = Lock.from_json(store.get(key), key)
    if (lock.sweep, lock.number) != (sweep, number):
        raise FormatError(f"{key}: this is lock {lock.number} of sweep {lock.sweep!r}")
    return lock


def plan_from_lock(
    lock: Lock,
    *,
    environment: Mapping[str, str],
    endpoints: Mapping[str, Endpoint] | None = None,
) -> Plan:
    """The plan that a lock was made of; its archives are in the store.

    Args:
        lock: the one in force.
        environment: where key variables must be set again.
        endpoints: from an endpoint file, in place of the lock's: deployment may change.

    Raises:
        ManifestError: an endpoint is lacking, or a key variable is not set.
    """
    warnings: list[str] = []
    chosen = {name: _endpoint(name, lock, endpoints, warnings) for name in lock.endpoints}
    faults = [
        ManifestFault(lock_key(lock.sweep, lock.number), None, f"endpoints.{name}", message)
        for name, endpoint in chosen.items()
        if (message := _key_fault(endpoint, environment)) is not None
    ]
    if faults:
        raise ManifestError(faults)
    spec = SweepSpec(
        sweep=lock.sweep,
        store=lock.store,
        agent=lock.agent,
        relay=lock.relay,
        network=lock.network,
        base_image=None if lock.base_image is None else lock.base_image.reference,
        seed=lock.seed,
        limits=lock.limits,
        endpoints={name: endpoint for name, endpoint in chosen.items() if endpoint is not None},
    )
    cells = tuple(_cell(lock, task, each) for task in lock.tasks for each in lock.conditions)
    return Plan(
        name=lock.name,
        started_at=lock.started_at,
        spec=spec,
        cells=cells,
        counts=lock.attempts,
        attempts=tuple(lay_out(lock.sweep, cells, lock.attempts)),
        scoring=lock.scoring,
        budget=lock.budget,
        base_image=lock.base_image,
        profile=lock.profile,
        warnings=tuple(warnings),
    )


def installed_versions() -> Versions:
    """The versions of what runs a sweep here."""
    return Versions(
        apiary=_version("apiary"),
        python=platform.python_version(),
        ray=_version("ray"),
        docker=_version("docker"),
        nostr_sdk=_version("nostr-sdk"),
    )


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _archive(plan: Plan, digest: str) -> bytes:
    source = plan.archives[digest]
    try:
        entries = read_folder(source.folder, source.kit)
    except TaskFolderError as error:
        raise LockError(str(error)) from error
    if entries_digest(entries) != digest:
        raise LockError(f"{source.folder}: changed since it was planned; start again")
    return pack_entries(entries)


def _locked_endpoint(endpoint: Endpoint) -> LockedEndpoint:
    return LockedEndpoint(
        provider=endpoint.provider,
        base_url=endpoint.base_url,
        model=endpoint.model,
        dialect=endpoint.dialect,
        api_key_env=endpoint.api_key_env,
        env_names=tuple(sorted(endpoint.env)),
    )


def _endpoint(
    name: str, lock: Lock, given: Mapping[str, Endpoint] | None, warnings: list[str]
) -> Endpoint | None:
    if given is not None:
        return given.get(name)
    locked = lock.endpoints[name]
    if locked.env_names:
        names = ", ".join(locked.env_names)
        warnings.append(f"endpoint {name}: {names} are not set: give the endpoint file again")
    return Endpoint(
        provider=locked.provider,
        api_key_env=locked.api_key_env,
        base_url=locked.base_url,
        model=locked.model,
    )


def _key_fault(endpoint: Endpoint | None, environment: Mapping[str, str]) -> str | None:
    if endpoint is None:
        return "the endpoint file given has no endpoint of this name"
    variable = endpoint.api_key_env
    if variable is None or environment.get(variable):
        return None
    return f"the environment variable {variable} must hold its key; it is not set"


def _cell(lock: Lock, task: Task, locked: LockedCondition) -> CellSpec:
    condition = locked.manifest
    files = [each for entry in condition.roster for each in (entry.prompt, entry.persona)]
    files += [skill for entry in condition.roster for skill in entry.skills]
    digests = dict.fromkeys(each.sha256 for each in files if each is not None)
    return CellSpec(
        cell=cell_id(locked.digest, task.digest),
        task=task,
        condition=condition,
        prompts={digest: lock.prompts[digest] for digest in digests},
    )
