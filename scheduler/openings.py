"""Nodes that are being opened, each in a task of its own, so that none waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from scheduler.errors import ClusterError
from scheduler.ray_node import RayNode

TOGETHER_S = 10.0
"""For those that are opened at the same time; past it what is open goes to work."""


class Openings:
    """The openings of one cluster; ``abandon`` must follow."""

    def __init__(self) -> None:
        """There are none yet."""
        self._tasks: dict[str, asyncio.Task[RayNode]] = {}

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, node_id: str, opening: Coroutine[Any, Any, RayNode]) -> None:
        """Opens a Ray node's actor; its end is told by ``ended``."""
        self._tasks[node_id] = asyncio.create_task(opening)

    async def ended(self, *, at_least_one: bool) -> tuple[list[RayNode], list[ClusterError]]:
        """Those that came to an end by now, in the order in which they were begun.

        Args:
            at_least_one: whether to wait for the first, however long it takes; else for all
                of them, but no longer than ``TOGETHER_S``.

        Returns:
            The nodes, and why others could not be opened.
        """
        if not self._tasks:
            return [], []
        done, _ = await asyncio.wait(self._tasks.values(), timeout=TOGETHER_S)
        if not done and at_least_one:
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(self._tasks.values(), return_when=first)
        found, faults = [], []
        for node_id in [each for each, task in self._tasks.items() if task in done]:
            try:
                found.append(self._tasks.pop(node_id).result())
            except ClusterError as error:
                faults.append(error)
        return found, faults

    async def abandon(self) -> list[RayNode]:
        """Ends them all.

        Returns:
            The nodes that were open already, and of which nobody had been told.
        """
        for task in self._tasks.values():
            task.cancel()
        left = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks = {}
        return [node for node in left if isinstance(node, RayNode)]
