"""Whether the deployment that a sweep names can be used, before anything of the sweep starts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from scheduler.errors import RelayNotReadyError
from scheduler.plan import Plan
from workers.contract.relay import Deployment, RelaySeen

LOOK_S = 30.0


def with_relay_seen(plan: Plan, environment: Mapping[str, str], *, key_needed: bool = True) -> Plan:
    """The plan with what its deployment's relay says of itself; as it is where it has none; blocks.

    Args:
        plan: what is to run.
        environment: where the owner's key is.
        key_needed: whether a key that is not here is a fault; else admission is not looked at.

    Raises:
        RelayNotReadyError: the relay cannot be used.
    """
    if plan.deployment is None:
        return plan
    seen = look_at_relay(plan.deployment, environment, key_needed=key_needed)
    warnings = plan.warnings
    before = plan.relay_seen
    if before is not None and (before.pubkey, before.version) != (seen.pubkey, seen.version):
        told = f"{before.version} with key {before.pubkey} and is {seen.version} with {seen.pubkey}"
        warnings = (*warnings, f"relay {plan.deployment.url}: it was {told}")
    return replace(plan, relay_seen=seen, warnings=warnings)


def relay_line(deployment: Deployment, seen: RelaySeen | None) -> str:
    """A deployment's relay in a line for people."""
    said = "not asked" if seen is None else f"{seen.name or 'no name'} {seen.version or ''}".strip()
    way = "" if deployment.gateway is None else f" by way of {deployment.gateway}"
    return f"relay {deployment.url}{way}: {said}, owner's key from ${deployment.owner_key_env}"


def look_at_relay(
    deployment: Deployment, environment: Mapping[str, str], *, key_needed: bool
) -> RelaySeen:
    """What the relay says of itself, once a trial's identity was admitted to it; blocks.

    Raises:
        RelayNotReadyError: it cannot be used, or the owner's key cannot be had.
    """
    # Here because a relay's client takes half a second to load, which other sweeps need not wait.
    from workers.owner_key import NoOwnerKeyError, OwnerKeyError, read_owner
    from workers.relay import UnfitRelayError, look_at

    owner = None
    try:
        owner = read_owner(deployment.owner_key_env, environment)
    except OwnerKeyError as error:
        if key_needed or not isinstance(error, NoOwnerKeyError):
            raise RelayNotReadyError(str(error)) from error

    async def looked() -> dict[str, object]:
        async with asyncio.timeout(LOOK_S):
            return await look_at(deployment.url, deployment.dialled, deployment.community, owner)

    # In a thread of its own: a driver whose loop runs asks too.
    with ThreadPoolExecutor(1) as pool:
        try:
            said = pool.submit(asyncio.run, looked()).result()
        except UnfitRelayError as error:
            raise RelayNotReadyError(f"relay {error}") from error
        except TimeoutError as error:
            words = f"relay {deployment.url}: it did not answer all questions within {LOOK_S:g} s"
            raise RelayNotReadyError(words) from error
    return RelaySeen.of(deployment, said)
