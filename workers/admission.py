"""How many trials a node runs at once, and when it takes no more. Pure.

*Why by the largest declaration:* a node tells the driver how many more leases it takes before it
knows of which tasks they will be. If what is left holds so many of the sweep's largest task, it
holds any that come: no lease is ever given back for want of room. What runs counts as what it
declares, so small tasks fill a node further than large ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from workers.contract.spec import CellSpec, Limits


class Declared(NamedTuple):
    """What a task's container may use."""

    cpus: int
    memory_mb: int


def declared(cell: CellSpec) -> Declared:
    """What a cell's container gets: the condition's word, else the task's."""
    own, override = cell.task.config.environment, cell.condition.environment
    return Declared(
        (override and override.override_cpus) or own.cpus,
        (override and override.override_memory_mb) or own.memory_mb,
    )


def largest(cells: Iterable[CellSpec]) -> Declared:
    """The largest declaration of each kind; it need not be one task's."""
    found = [declared(cell) for cell in cells]
    return Declared(
        max((each.cpus for each in found), default=1),
        max((each.memory_mb for each in found), default=1),
    )


class Room:
    """What a node has for trials: declarations may add up to more than it has, by a factor."""

    def __init__(
        self,
        limits: Limits,
        *,
        n_concurrent: int | None,
        cores: int,
        memory_mb: int,
        task: Declared,
    ) -> None:
        """Nothing runs yet.

        Args:
            limits: of the sweep; they hold both overcommit factors.
            n_concurrent: how many the operator wants at once, as far as memory bears it: agents
                that wait for a model need no core each. Null: as cores and memory have room.
            cores: of the node.
            memory_mb: of the node.
            task: the largest declaration among the sweep's tasks.
        """
        self._cpus = cores * limits.cpu_overcommit
        self._memory_mb = memory_mb * limits.memory_overcommit
        self._task = task
        self._bound = n_concurrent
        self.slots = self.free(())
        """Trials at once if all are of the largest declaration; at least one."""

    def free(self, running: Iterable[Declared]) -> int:
        """How many more trials may start beside those that run; one always runs."""
        found = list(running)
        cpus = self._cpus - sum(each.cpus for each in found)
        memory_mb = self._memory_mb - sum(each.memory_mb for each in found)
        by_memory = math.floor(memory_mb / max(1, self._task.memory_mb))
        if self._bound is None:
            fits = min(by_memory, math.floor(cpus / max(1, self._task.cpus)))
        else:
            fits = min(by_memory, self._bound - len(found))
        return max(fits, 0 if found else 1)

    def fits(self, running: Iterable[CellSpec]) -> int:
        """``free`` by the cells whose trials run."""
        return self.free(map(declared, running))


def refusal(limits: Limits, *, disk_free_mb: int) -> str:
    """Why a node may take no more leases; empty: it may."""
    if disk_free_mb < limits.disk_free_mb:
        return f"disk: {disk_free_mb} MB free, fewer than limits.disk_free_mb {limits.disk_free_mb}"
    return ""
