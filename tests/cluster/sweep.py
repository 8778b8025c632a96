"""A sweep on machines, watched while something happens to them."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.cluster.machine import Machine
from tests.cluster.world import ClusterWorld
from tests.faults.sweeps import Sweep
from tests.faults.table import Row
from workers.contract.result import TryRecord


class ClusterSweep(Sweep):
    """See ``cluster_sweep``."""

    world: ClusterWorld

    def meanwhile(self, what: str, condition: Callable[[], bool]) -> None:
        """Waits until a condition holds while the command runs."""

        def holds() -> bool:
            assert self.last.code is None, (what, self.last.end.get("reason"), self.last.notes())
            return condition()

        self.until(what, holds)

    def runs_on(self, machine: str) -> bool:
        """Whether a container of it runs there."""
        return self.world.on(self.id, machine) > 0

    def counted_on(self) -> Counter[str]:
        """Its results by the node that made them."""
        bodies = (body.partition(b"\n")[2] for body in dict(self.counted).values())
        return Counter(TryRecord.from_json(body, "a result").node for body in bodies)

    def causes(self) -> Counter[str]:
        """Of the tries that gave no verdict."""
        return self.world.tally(self.id, self.commands).causes

    @contextlib.contextmanager
    def cut_for(self, machine: Machine, seconds: float) -> Iterator[None]:
        """Pulls a machine's cable; plugs it in again when so much time has passed."""
        machine.cut()
        ends = time.monotonic() + seconds
        try:
            yield
            self.outlast(max(0.0, ends - time.monotonic()))
        finally:
            machine.heal()

    def until_told(self, part: str) -> None:
        """Waits until the command has told its user something."""
        self.meanwhile(part, lambda: any(part in note for note in self.last.notes()))

    def check(self) -> None:
        """Every planned attempt has one result, and nothing is left on any machine."""
        assert self.row("all of it") == Row("all of it", 0, self.planned, self.planned, 0, 0, 0)


@contextlib.contextmanager
def cluster_sweep(world: ClusterWorld, name: str, **options: Any) -> Iterator[ClusterSweep]:
    """A sweep of slow trials that has begun; its commands are ended when it is left."""
    before = len(world.commands)
    try:
        yield ClusterSweep(world, name, **options)
    finally:
        for command in world.commands[before:]:
            command.kill(group=True)
