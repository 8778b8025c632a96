"""The lock of a sweep: all that was fixed at its start, as the store keeps it.

A sweep is resumed from its last lock alone (``lock_plan``), on any machine that reaches the store.
A lock is created once and never replaced; a sweep that grows gets another one with the next
number. It names key variables and never holds a key.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from scheduler.lock_format import Lock, LockedCell, LockedCondition, LockedEndpoint, Versions
from scheduler.manifest import SweepBudget
from scheduler.plan import Plan
from workers.contract.base import FormatError, sha256_hex
from workers.contract.buzz import buzz_dialect, program_key
from workers.contract.endpoint import BASE_URL_VARIABLES, Endpoint
from workers.contract.spec import AgentKind
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
    "lock_numbers",
    "lock_of",
    "read_lock",
    "read_locks",
    "revised",
    "superseded",
    "write_lock",
    "write_next",
]

_LOCK_KEY = re.compile(r"sweeps/[^/]+/lock-([1-9][0-9]*)\.json")


class LockError(Exception):
    """A lock cannot be written or is not there; the message says why."""


def lock_key(sweep: str, number: int) -> str:
    """The store's key of a lock."""
    return f"sweeps/{sweep}/lock-{number}.json"


def lock_of(plan: Plan) -> Lock:
    """The lock that says what a plan says."""
    spec = plan.spec
    found = {cell.condition.condition: cell for cell in plan.cells}
    conditions = {found[name].condition.digest: found[name] for name in plan.conditions}
    prompts = {digest: text for cell in plan.cells for digest, text in cell.prompts.items()}
    return Lock(
        number=plan.number,
        grown_at=plan.grown_at,
        sweep=spec.sweep,
        name=plan.name,
        started_at=plan.started_at,
        store=spec.store,
        agent=spec.agent,
        relay=spec.relay,
        relay_seen=plan.relay_seen,
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
            LockedCondition(
                digest=digest,
                manifest=cell.condition,
                canary=cell.canary,
                varies=dict(plan.varies.get(digest, {})),
            )
            for digest, cell in conditions.items()
        ),
        prompts=prompts,
        endpoints={
            name: _locked_endpoint(each, spec.agent) for name, each in spec.endpoints.items()
        },
        attempts=dict(plan.counts),
        canary=plan.canary,
        timeout_multipliers=spec.timeout_multipliers,
        buzz=spec.buzz,
    )


def write_lock(store: Store, plan: Plan) -> Lock:
    """Uploads the archives of a plan's tasks and its agents' programs, then its lock; blocks.

    In this order, so that a lock in the store means that the sweep can run from it.

    Raises:
        LockError: a task's folder or a program changed since it was planned, or the store has
            another lock of this number.
        StoreError: the store refused.
    """
    for digest in plan.archives:
        key = archive_key(digest)
        if not store.exists(key):
            store.create(key, _archive(plan, digest))
    for digest, path in plan.programs.items():
        key = program_key(digest)
        if not store.exists(key):
            store.create(key, _program(path, digest))
    lock = lock_of(plan)
    key, data = lock_key(plan.sweep, lock.number), lock.to_json().encode()
    if not store.create(key, data):
        if lock.number > 1:
            raise LockError(
                f"{key}: somebody else has grown this sweep in the meantime: "
                "see what would be added now with `apiary plan`, and start again"
            )
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
    numbers = lock_numbers(store, sweep)
    if not numbers:
        raise LockError(f"{store.url}: there is no lock of a sweep {sweep!r}")
    return [read_lock(store, sweep, number) for number in numbers]


def lock_numbers(store: Store, sweep: str) -> list[int]:
    """The numbers of a sweep's locks in order; blocks.

    Raises:
        StoreError: the store refused.
    """
    found = (_LOCK_KEY.fullmatch(key) for key in store.keys(f"sweeps/{sweep}/lock-"))
    return sorted(int(match[1]) for match in found if match is not None)


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


def superseded(locks: Sequence[Lock]) -> tuple[LockedCell, ...]:
    """The cells that earlier locks plan and the last one does not.

    Their tasks or conditions have changed. What they came to stays under their own digests and
    counts in no score.
    """
    cells = {each.cell: each for lock in locks for each in lock.cells}
    return tuple(each for cell, each in cells.items() if cell not in locks[-1].attempts)


def revised(
    lock: Lock, *, budget: SweepBudget, endpoints: Mapping[str, Endpoint] | None = None
) -> Lock:
    """The lock with what may change without planning anything else; its number is the old one.

    Args:
        lock: the last one.
        budget: of the whole sweep.
        endpoints: those that go on from here; null: as they are.
    """
    update: dict[str, object] = {"budget": budget}
    if endpoints is not None:
        update["endpoints"] = {
            name: _locked_endpoint(each, lock.agent) for name, each in endpoints.items()
        }
    return lock.model_copy(update=update)


def write_next(store: Store, lock: Lock, now: datetime) -> Lock:
    """Writes a revised lock under the next number; blocks.

    Raises:
        LockError: somebody else has written the next lock in the meantime.
        StoreError: the store refused.
    """
    made = lock.model_copy(
        update={
            "number": lock.number + 1,
            "grown_at": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
    )
    key = lock_key(made.sweep, made.number)
    if not store.create(key, made.to_json().encode()):
        raise LockError(f"{key}: somebody else has grown this sweep in the meantime: start again")
    return made


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


def _program(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LockError(f"{path}: cannot be read: {error.strerror}") from error
    if sha256_hex(data) != digest:
        raise LockError(f"{path}: changed since it was planned; start again")
    return data


def _locked_endpoint(endpoint: Endpoint, agent: AgentKind) -> LockedEndpoint:
    said = endpoint.env.get(BASE_URL_VARIABLES.get(endpoint.provider, ""))
    return LockedEndpoint(
        **endpoint.model_dump(exclude={"env", "base_url"}),
        base_url=endpoint.base_url or said,
        dialect=buzz_dialect(endpoint) if agent == "buzz" else endpoint.dialect,
        env_names=tuple(sorted(endpoint.env)),
    )
