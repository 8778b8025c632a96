"""Formats of the claims and signs of life of a sweep's drivers, and reading them. Blocks.

``drivers/<g>.json`` is created once and claims generation ``g``; ``drivers/<g>.beat.json`` is
written over every few seconds by driver ``g`` and says that it lives, or that it has ended.

*Why a beat is a number:* whoever waits measures on its own monotonic clock how long the number
has stood still. No two machines' wall clocks are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from scheduler.process import is_gone
from workers.contract.base import FormatError, Strict
from workers.storage.interface import MissingKeyError, Store

OWN_ADDRESSES = ("auto", "local", "localhost", "127.", "[::1]")
"""Beginnings of addresses that mean another cluster on each machine."""


class DriverClaim(Strict):
    """``drivers/<g>.json``: a driver generation is taken by creating it."""

    schema_version: Literal[1] = 1
    sweep: str
    generation: int
    host: str
    started_at: str
    """RFC 3339, UTC."""
    process: str = ""
    """The driver's process, for those on the same machine (``scheduler.process``)."""
    ray_address: str | None = None
    """Of the cluster that it uses; null: a Ray of its own, whose nodes end with it."""


class DriverBeat(Strict):
    """``drivers/<g>.beat.json``: a sign of life, written over every few seconds."""

    schema_version: Literal[1] = 1
    beat: int
    """Grows with each."""
    ended: bool = False
    """Whether it has ended, and left nothing running but nodes on a cluster that was taken over."""


def claim_key(sweep: str, generation: int) -> str:
    """The key of a claim."""
    return f"sweeps/{sweep}/drivers/{generation}.json"


def beat_key(sweep: str, generation: int) -> str:
    """The key of a driver's beat."""
    return f"sweeps/{sweep}/drivers/{generation}.beat.json"


def described(claim: DriverClaim) -> str:
    """A driver, for people."""
    return f"driver {claim.generation} on host {claim.host}"


def share_nodes(one: DriverClaim, other: DriverClaim) -> bool:
    """Whether two drivers are certainly on one cluster, so that one finds the other's nodes."""
    address = one.ray_address
    if address is None or address != other.ray_address:
        return False
    return one.host == other.host or not address.startswith(OWN_ADDRESSES)


def last_generation(store: Store, sweep: str) -> int:
    """The highest driver generation that was claimed; 0: none. Blocks."""
    prefix = f"sweeps/{sweep}/drivers/"
    names = (key.removeprefix(prefix).removesuffix(".json") for key in store.keys(prefix))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def unfinished(store: Store, sweep: str, generations: Iterable[int]) -> list[DriverClaim]:
    """The claims of those generations that do not say that they have ended. Blocks."""
    found = []
    for generation in generations:
        beat = read_beat(store, sweep, generation)
        if beat is not None and beat.ended:
            continue
        claim = read_claim(store, sweep, generation)
        if claim is not None:
            found.append(claim)
    return found


def at_work(store: Store, sweep: str) -> DriverClaim | None:
    """The driver of a sweep that has not ended, as far as a single look can tell. Blocks."""
    last = last_generation(store, sweep)
    for claim in unfinished(store, sweep, [last] if last else []):
        if not (claim.process and is_gone(claim.process)):
            return claim
    return None


def read_claim(store: Store, sweep: str, generation: int) -> DriverClaim | None:
    """A driver's claim; None where there is none that can be read. Blocks."""
    key = claim_key(sweep, generation)
    try:
        return DriverClaim.from_json(store.get(key), key)
    except (FormatError, MissingKeyError):
        return None


def read_beat(store: Store, sweep: str, generation: int) -> DriverBeat | None:
    """A driver's last beat; None where there is none that can be read. Blocks."""
    key = beat_key(sweep, generation)
    try:
        return DriverBeat.from_json(store.get(key), key)
    except (FormatError, MissingKeyError):
        return None
