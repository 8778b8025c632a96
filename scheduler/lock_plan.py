"""From a lock back to the plan that it was made of: what a sweep is resumed from. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.lock import lock_key
from scheduler.lock_format import Lock, LockedCell
from scheduler.manifest import ManifestError, ManifestFault
from scheduler.manifest.endpoints import key_problem
from scheduler.plan import Plan, lay_out
from workers.contract.buzz import OPENAI_API, buzz_dialect
from workers.contract.endpoint import Endpoint
from workers.contract.spec import CellSpec, SweepSpec


def plan_from_lock(
    lock: Lock,
    *,
    environment: Mapping[str, str] | None = None,
    endpoints: Mapping[str, Endpoint] | None = None,
) -> Plan:
    """The plan that a lock was made of; its archives are in the store.

    Args:
        lock: the one in force.
        environment: where key variables must be set again; null: they are not looked at.
        endpoints: from an endpoint file, in place of the lock's: deployment may change.

    Raises:
        ManifestError: an endpoint or a prompt is lacking, or a key variable is not set.
    """
    warnings: list[str] = []
    chosen = {name: _endpoint(name, lock, endpoints, warnings) for name in lock.endpoints}
    there = {name: endpoint for name, endpoint in chosen.items() if endpoint is not None}
    place = lock_key(lock.sweep, lock.number)
    faults = [
        ManifestFault(
            place,
            None,
            f"endpoints.{name}",
            "the endpoint file given has no endpoint of this name",
        )
        for name in chosen
        if name not in there
    ]
    faults += [
        ManifestFault(place, None, f"prompts.{digest}", f"condition {name} needs its text")
        for digest, name in _prompts(lock).items()
        if digest not in lock.prompts
    ]
    if environment is not None:
        faults += key_faults(place, there, environment)
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
        endpoints=there,
        pass_threshold=lock.scoring.pass_threshold,
        timeout_multipliers=lock.timeout_multipliers,
        buzz=lock.buzz,
    )
    cells = tuple(_cell(lock, each) for each in lock.cells)
    return Plan(
        name=lock.name,
        started_at=lock.started_at,
        spec=spec,
        cells=cells,
        conditions=tuple(each.manifest.condition for each in lock.conditions),
        counts=lock.attempts,
        attempts=tuple(lay_out(lock.sweep, cells, lock.attempts)),
        scoring=lock.scoring,
        budget=lock.budget,
        base_image=lock.base_image,
        profile=lock.profile,
        number=lock.number,
        grown_at=lock.grown_at,
        canary=lock.canary,
        varies={each.digest: each.varies for each in lock.conditions if each.varies},
        warnings=tuple(warnings),
        relay_seen=lock.relay_seen,
    )


def key_faults(
    place: str, endpoints: Mapping[str, Endpoint], environment: Mapping[str, str]
) -> list[ManifestFault]:
    """A fault for every key that endpoints need and the environment lacks.

    Args:
        place: the lock's key, which the faults name.
        endpoints: by name.
        environment: where keys are, as ``<name>`` or ``<name>_FILE``.
    """
    return [
        ManifestFault(place, None, f"endpoints.{name}", message)
        for name, endpoint in endpoints.items()
        for variable in endpoint.secret_names
        if (message := key_problem(variable, f"its {_role(endpoint, variable)}", environment))
        is not None
    ]


def _role(endpoint: Endpoint, variable: str) -> str:
    return "key" if variable == endpoint.api_key_env else "header"


def _endpoint(
    name: str, lock: Lock, given: Mapping[str, Endpoint] | None, warnings: list[str]
) -> Endpoint | None:
    locked = lock.endpoints[name]
    if given is not None and name not in _canaries(lock):
        endpoint = given.get(name)
        if endpoint is not None and lock.agent == "buzz":
            now = buzz_dialect(endpoint)
            if now != locked.dialect:
                told = f"the sweep's agents spoke {locked.dialect} to it, and now it is {now}"
                warnings.append(f"endpoint {name}: {told}")
        return endpoint
    env = {}
    if OPENAI_API in locked.env_names and lock.agent == "buzz" and locked.provider == "openai":
        # The dialect is part of what was measured; by the host alone it may be the other.
        env = {OPENAI_API: str(locked.dialect)}
    lacking = [each for each in locked.env_names if each not in env]
    if lacking:
        names = ", ".join(lacking)
        warnings.append(f"endpoint {name}: {names} are not set: give the endpoint file again")
    return Endpoint(**locked.model_dump(exclude={"dialect", "env_names"}), env=env)


def _canaries(lock: Lock) -> frozenset[str]:
    """The endpoints that the node itself serves for canaries, called as their conditions."""
    return frozenset(each.manifest.condition for each in lock.conditions if each.canary)


def _prompts(lock: Lock) -> dict[str, str]:
    """The SHA-256 of every prompt, and a condition that needs it."""
    return {
        digest: each.manifest.condition
        for each in lock.conditions
        for digest in each.manifest.prompt_digests
    }


def _cell(lock: Lock, planned: LockedCell) -> CellSpec:
    condition = planned.condition.manifest
    return CellSpec(
        cell=planned.cell,
        task=planned.task,
        condition=condition,
        prompts={digest: lock.prompts[digest] for digest in condition.prompt_digests},
        canary=planned.condition.canary,
    )
