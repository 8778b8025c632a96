"""Removes what sweeps left behind, and only what is proved to be ours and not needed.

Two proofs: the label says when it expires, and that is past; or the label names this node and
an owning process that is gone. Everything else stays, whatever it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from workers.container import ownership
from workers.container.api import DockerApi, Kind, MissingError
from workers.container.calls import Deadline
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError

_TIMEOUT_S = 300.0
_KINDS: tuple[Kind, ...] = ("containers", "volumes", "networks")


@dataclass(frozen=True)
class Leftover:
    """A thing of ours that nobody needs."""

    kind: Kind
    id: str
    """A container's id, a volume's or network's name."""
    reason: str


@dataclass(frozen=True)
class Reaped:
    """What a reaper did."""

    removed: tuple[Leftover, ...]
    failed: tuple[tuple[Leftover, str], ...]
    """What it could not remove, and why."""


def why_removable(
    labels: Mapping[str, str],
    node: str,
    now_s: float,
    is_gone: Callable[[str], bool] = ownership.is_gone,
) -> str | None:
    """Why a thing with these labels may be removed, None if that is not proved.

    Args:
        labels: its labels.
        node: the name of this node.
        now_s: Unix time in seconds.
        is_gone: whether the process of an owner label is gone.
    """
    expires = labels.get(ownership.EXPIRES, "")
    if expires.isascii() and expires.isdigit() and int(expires) < now_s:
        return f"expired {now_s - int(expires):.0f} s ago"
    owner = labels.get(ownership.OWNER, "")
    if owner and labels.get(ownership.NODE) == node and is_gone(owner):
        return f"its owner, process {owner.partition(':')[0]}, is gone"
    return None


async def leftovers(engine: DockerEngine, now: datetime | None = None) -> list[Leftover]:
    """What may be removed from this node's engine.

    Raises:
        ContainerError: the engine did not answer.
    """
    now_s = (now or datetime.now(UTC)).timestamp()
    deadline = Deadline("list what sweeps left behind", _TIMEOUT_S)

    def find(left: Deadline) -> list[Leftover]:
        labelled = [ownership.EXPIRES, ownership.OWNER]
        return [
            Leftover(kind, name, reason)
            for kind in _KINDS
            for name, labels in _labelled(engine.api, kind, labelled, left).items()
            if (reason := why_removable(labels, engine.node, now_s)) is not None
        ]

    return await engine.calls.run(deadline, find)


async def reap(engine: DockerEngine, now: datetime | None = None) -> Reaped:
    """Removes everything in ``leftovers``, and the public network if nobody uses it.

    Raises:
        ContainerError: the engine did not answer the question what there is.
    """
    done = await _remove(engine, await leftovers(engine, now))
    await engine.remove_network_if_unused()
    return done


async def remove_all_of(engine: DockerEngine, sweep: str) -> Reaped:
    """Removes everything that carries a sweep's label, running or not.

    Raises:
        ContainerError: the engine did not answer the question what there is.
    """
    deadline = Deadline(f"list what belongs to sweep {sweep}", _TIMEOUT_S)

    def find(left: Deadline) -> list[Leftover]:
        label = [f"{ownership.SWEEP}={sweep}"]
        return [
            Leftover(kind, name, f"it belongs to sweep {sweep}")
            for kind in _KINDS
            for name in _labelled(engine.api, kind, label, left)
        ]

    return await _remove(engine, await engine.calls.run(deadline, find))


async def _remove(engine: DockerEngine, found: list[Leftover]) -> Reaped:
    """Removes one after the other; a refusal does not stop the rest."""
    removed: list[Leftover] = []
    failed: list[tuple[Leftover, str]] = []
    deadline = Deadline("remove what sweeps left behind", _TIMEOUT_S)
    for leftover in found:
        try:
            await engine.calls.run(deadline, functools.partial(_remove_one, engine.api, leftover))
        except MissingError:
            continue  # its owner was faster
        except ContainerError as error:
            failed.append((leftover, str(error)))
        else:
            removed.append(leftover)
    return Reaped(tuple(removed), tuple(failed))


def _remove_one(api: DockerApi, leftover: Leftover, deadline: Deadline) -> None:
    """Removes a container, volume or network."""
    if leftover.kind == "containers":
        api.remove(leftover.id, deadline.left_s())
    else:
        api.remove_other(leftover.kind, leftover.id, deadline.left_s())


def _labelled(
    api: DockerApi, kind: Kind, labels: list[str], deadline: Deadline
) -> dict[str, dict[str, str]]:
    """Name → labels of all things of a kind that carry at least one of the labels."""
    found: dict[str, dict[str, str]] = {}
    for label in labels:
        for item in api.listing(kind, [label], deadline.left_s()):
            found[_name(kind, item)] = dict(item["Labels"] or {})
    return found


def _name(kind: Kind, item: Any) -> str:
    """By what the engine knows a listed thing."""
    return str(item["Name"] if kind == "volumes" else item["Id"])
