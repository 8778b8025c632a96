"""The reaper on a timer: what dead processes leave is removed while a node works.

A round begins when the one before has ended, so they never overlap; it is bounded, and what goes
wrong in it is noted and tried again in the next.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable

from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError
from workers.container.reap import Reaped, Scope, reap
from workers.container.scratch import folders_with_owners, remove_abandoned

_log = logging.getLogger(__name__)

SOON_S = 10.0
"""Until the next round when the engine is known to have left something."""
LAST_S = 10.0
ROUND_S = 120.0
"""A round that takes longer is broken off."""


class Keeper:
    """Reaps one node, now and then."""

    def __init__(
        self,
        engine: DockerEngine,
        scope: Scope,
        every_s: float,
        round_s: float = ROUND_S,
        note: Callable[[str], None] = _log.warning,
        reaped: Callable[[str, int], None] = lambda kind, count: None,
    ) -> None:
        self._engine = engine
        self._scope = scope
        self._every_s = every_s
        self._round_s = round_s
        self._note = note
        self._reaped = reaped
        self.removed: Counter[str] = Counter()
        """What was removed so far, by kind."""
        self.failures = 0
        """Rounds that did not end well."""

    async def run(self) -> None:
        """Reaps every so many seconds until it is cancelled."""
        while True:
            await self._pause()
            try:
                await self.round()
            except (ContainerError, OSError, TimeoutError) as error:
                self.failures += 1
                self._note(
                    f"the reaper will try again in {self._every_s:g} s: "
                    f"{str(error) or f'not done within {self._round_s:g} s'}"
                )

    async def last_round(self) -> None:
        """Reaps once before the node is let go of: of two that die and end, nobody comes after.

        What goes wrong is noted, and is the next one's.
        """
        try:
            async with asyncio.timeout(LAST_S):
                await self.round()
        except (ContainerError, OSError, TimeoutError) as error:
            self.failures += 1
            self._note(f"the reaper's last round: {str(error) or f'over {LAST_S:g} s'}")

    async def _pause(self) -> None:
        """Waits for the next round, which comes soon if a container could not be removed."""
        ends = time.monotonic() + self._every_s
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(left, SOON_S))
            if self._engine.given_up:
                return

    async def round(self) -> Reaped:
        """Reaps once.

        Raises:
            ContainerError: the engine did not answer the question what there is.
            TimeoutError: it took too long.
        """
        async with asyncio.timeout(self._round_s):
            done = await reap(self._engine, self._scope)
            removed = Counter[str](each.kind for each in done.removed)
            if self._scope.workspace is not None:
                folders = await asyncio.to_thread(folders_with_owners, self._scope.workspace)
                gone = await asyncio.to_thread(remove_abandoned, folders)
                removed["folders"] += len(gone)
            self.removed.update(removed)
            for kind, count in removed.items():
                self._reaped(kind, count)
        for leftover, why in done.failed:
            self._note(f"the reaper could not remove {leftover.kind} {leftover.id}: {why}")
        return done
