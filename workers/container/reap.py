"""Removes what sweeps left behind, and only what is proved to be ours and not needed.

Ours is what carries the proof of ``ownership``: labels that were given to this very thing. Of
that, what is not needed: the process that made it is gone, and was this node's, or of this boot of
this machine whatever its node was called (a Ray node that died comes back under another name); or
this process made it and could not remove it; or it has expired, and whether its maker lives cannot
be told from here. What a living process made is its own, however far some clock has jumped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from workers.container import ownership
from workers.container.api import ConflictError, DockerApi, Kind, MissingError
from workers.container.calls import Deadline
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError
from workers.container.unused import (
    DAYS,
    find_bundles,
    find_images,
    remove_bundle,
    remove_image,
)

GIVEN_UP = "its owner could not remove it"
_TIMEOUT_S = 300.0
_KINDS: tuple[Kind, ...] = ("containers", "volumes", "networks")


@dataclass(frozen=True)
class Leftover:
    """A thing of ours that nobody needs."""

    kind: Kind | Literal["images", "bundles"]
    id: str
    """A container's id, a volume's or network's name, an image's tag, a bundle's folder."""
    reason: str


@dataclass(frozen=True)
class Reaped:
    """What a reaper did."""

    removed: tuple[Leftover, ...]
    failed: tuple[tuple[Leftover, str], ...]
    """What it could not remove, and why."""


@dataclass(frozen=True)
class Scope:
    """Beside containers, volumes and networks: what is looked at, and how old it must be."""

    workspace: Path | None = None
    """Where bundles of the agent's files lie; none: no bundle is looked at."""
    unused_days: float = DAYS
    """Images and bundles that no sweep has used for so long have expired."""


def why_removable(
    name: str,
    labels: Mapping[str, str],
    node: str,
    now_s: float,
    given_up: bool = False,
    lives: tuple[Callable[[str], bool], Callable[[str], bool]] = (
        ownership.is_alive,
        ownership.is_gone,
    ),
) -> str | None:
    """Why a thing may be removed, None if that is not proved.

    Args:
        name: its name, to which the labels must have been given.
        labels: its labels.
        node: the name of this node.
        now_s: Unix time in seconds.
        given_up: whether this process made it and failed to remove it.
        lives: whether the process of an owner label is proved to live, and to be gone.
    """
    is_alive, is_gone = lives
    owner = labels.get(ownership.OWNER, "")
    if not owner or not ownership.proves(name, labels):
        return None
    if given_up:
        return GIVEN_UP
    if is_alive(owner):
        return None
    ours = labels.get(ownership.NODE) == node or ownership.is_of_this_machine(owner)
    if ours and is_gone(owner):
        return f"its owner, process {owner.partition(':')[0]}, is gone"
    expires = labels.get(ownership.EXPIRES, "")
    if expires.isascii() and expires.isdigit() and int(expires) < now_s:
        return f"expired {now_s - int(expires):.0f} s ago"
    return None


async def leftovers(
    engine: DockerEngine, scope: Scope | None = None, now: datetime | None = None
) -> list[Leftover]:
    """What may be removed from this node.

    Raises:
        ContainerError: the engine did not answer.
    """
    scope = scope or Scope()
    now_s = (now or datetime.now(UTC)).timestamp()
    deadline = Deadline("list what sweeps left behind", _TIMEOUT_S)

    def find(left: Deadline) -> list[Leftover]:
        api = engine.api
        found = [
            Leftover(kind, _id(kind, item), reason)
            for kind in _KINDS
            for item in api.listing(kind, [ownership.PROOF], left.left_s())
            if (reason := _why(engine, kind, item, now_s)) is not None
        ]
        images = find_images(api, engine.directory, scope.unused_days, now_s, left)
        bundles = find_bundles(api, scope.workspace, scope.unused_days, now_s, left)
        return [
            *found,
            *(Leftover("images", tag, reason) for tag, reason in images),
            *(Leftover("bundles", str(folder), reason) for folder, reason in bundles),
        ]

    return await engine.calls.run(deadline, find)


async def reap(
    engine: DockerEngine, scope: Scope | None = None, now: datetime | None = None
) -> Reaped:
    """Removes everything in ``leftovers``, and the public network if nobody uses it.

    Raises:
        ContainerError: the engine did not answer the question what there is.
    """
    scope = scope or Scope()
    given_up = set(engine.given_up)
    found = await leftovers(engine, scope, now)
    done = await remove(engine, found)
    # What is not there any more needs nobody's care; what could not be removed is still ours.
    engine.given_up -= given_up
    engine.given_up |= {leftover.id for leftover, _ in done.failed if leftover.reason == GIVEN_UP}
    await engine.remove_network_if_unused()
    return done


def _why(engine: DockerEngine, kind: Kind, item: Any, now_s: float) -> str | None:
    name, labels = _name(kind, item), item["Labels"] or {}
    given_up = kind == "containers" and not engine.given_up.isdisjoint({name, _id(kind, item)})
    return why_removable(name, labels, engine.node, now_s, given_up)


async def remove(engine: DockerEngine, found: Iterable[Leftover]) -> Reaped:
    """Removes one after the other; a refusal does not stop the rest."""
    removed: list[Leftover] = []
    failed: list[tuple[Leftover, str]] = []
    deadline = Deadline("remove what sweeps left behind", _TIMEOUT_S)
    for leftover in found:
        try:
            call = functools.partial(_remove_one, engine, leftover)
            gone = await engine.calls.run(deadline, call)
        except MissingError:
            continue  # somebody else was faster
        except (ContainerError, OSError) as error:
            failed.append((leftover, str(error)))
        else:
            removed += [leftover] if gone else []
    return Reaped(tuple(removed), tuple(failed))


def _remove_one(engine: DockerEngine, leftover: Leftover, deadline: Deadline) -> bool:
    """Removes a thing; False: somebody has begun to use it, or removes it already."""
    api = engine.api
    match leftover.kind:
        case "containers":
            return _remove_container(api, leftover.id, deadline)
        case "images":
            return remove_image(api, engine.directory, leftover.id, deadline)
        case "bundles":
            return remove_bundle(Path(leftover.id))
        case kind:
            api.remove_other(kind, leftover.id, deadline.left_s())
            return True


def _remove_container(api: DockerApi, container: str, deadline: Deadline) -> bool:
    try:
        api.remove(container, deadline.left_s())
    except ConflictError:  # another reaper, or its owner, is removing it
        return False
    return True


def _id(kind: Kind, item: Any) -> str:
    """By what the engine knows a listed thing."""
    return str(item["Name"] if kind == "volumes" else item["Id"])


def _name(kind: Kind, item: Any) -> str:
    """The name that a listed thing was given."""
    return ownership.listed_name(item) if kind == "containers" else str(item["Name"])
