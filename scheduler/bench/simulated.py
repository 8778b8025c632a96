"""Nodes that run nothing: every trial is over at once, with a record as a real one has it.

What the driver works for an attempt is then all that is left to measure. A node answers in the
driver's process, but in JSON, as over a wire, and keeps account of its own time.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scheduler.cluster import ClusterOptions
from scheduler.index import IndexWriter
from scheduler.plan import Plan
from workers.contract.outcome import Cause, Phase, outcome_of
from workers.contract.report import Orders, Progress
from workers.contract.result import TryRecord, result_key
from workers.contract.spec import CellSpec, Epoch, Lease, SweepSpec
from workers.contract.unfinished import unfinished_record

SLOTS = 64
"""Trials at once on a node."""
FAILED = 0.25
"""The share of attempts that fail; the others pass."""
_BEGAN, _ENDED = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:02.000Z"
_FILES = (
    "details.json",
    "evidence.json",
    "logs/agents/solo-1.stdout.log",
    "relay-events.jsonl",
    "reward.json",
    "usage.jsonl",
)


class Records:
    """How the attempts of a sweep end, by a seed: the same attempt always the same way."""

    def __init__(self, sweep: str, cells: Mapping[str, CellSpec], seed: int) -> None:
        self._sweep = sweep
        self._cells = cells
        self._seed = seed
        self._made: dict[tuple[str, Cause], dict[str, Any]] = {}

    def cause(self, attempt: str) -> Cause:
        """Why an attempt is what it is."""
        drawn = random.Random(f"{self._seed} {attempt}").random()
        return Cause.WRONG if drawn < FAILED else Cause.NONE

    def record(self, attempt: str, index: int, cell: str, epoch: Epoch) -> dict[str, Any]:
        """The record of a try, as JSON has it."""
        key = (cell, self.cause(attempt))
        if key not in self._made:
            self._made[key] = json.loads(self.example(self._cells[cell], key[1]).to_json())
        own = {"attempt": attempt, "index": index, "try": str(epoch), "epoch": list(epoch)}
        return {**self._made[key], **own}

    def example(self, cell: CellSpec, cause: Cause) -> TryRecord:
        """The record of some try of a cell."""
        reward = 0.0 if cause is Cause.WRONG else 1.0
        return unfinished_record(
            outcome_of(cause, Phase.SEAL, ""),
            sweep=self._sweep,
            cell=cell,
            attempt="",
            index=0,
            epoch=Epoch(1, 1),
            node="simulated",
            started_at=_BEGAN,
            ended_at=_ENDED,
        ).model_copy(
            update={
                "reward": reward,
                "dimensions": dict.fromkeys(("channel", "content", "mention", "thread"), reward),
                "phase_seconds": {phase.value: 0.123456 for phase in Phase},
                "files": dict.fromkeys(_FILES, "0" * 64),
            }
        )


@dataclass
class SimulatedNode:
    """One node as dispatch sees it."""

    name: str
    records: Records
    adopted: bool = False
    metrics: str = ""
    work_s: float = 0.0
    """What it worked itself: not the driver's doing."""
    _number: int = field(init=False, default=0)

    async def exchange(self, orders: Orders) -> Progress:
        """Runs what it is given, and answers; without work it waits, as a node does."""
        orders.to_json()
        began = time.thread_time()
        self._number += 1
        record = self.records.record
        answer = json.dumps(
            {
                "node": self.name,
                "number": self._number,
                "generation": orders.generation,
                "ended": [_ended(record, lease) for lease in orders.leases],
                "free_slots": SLOTS,
                "clock_s": time.time(),
            }
        )
        self.work_s += time.thread_time() - began
        await asyncio.sleep(0 if orders.leases else orders.wait_s)
        return Progress.from_json(answer, f"progress of node {self.name}")


def _ended(record: Any, lease: Lease) -> dict[str, Any]:
    made: dict[str, Any] = record(lease.attempt, lease.index, lease.cell, lease.epoch)
    return made


class SimulatedNodes:
    """The nodes of a sweep, for ``scheduler.driver.drive`` in place of a cluster."""

    untidy_nodes: Sequence[str] = ()

    def __init__(self, count: int, records: Records) -> None:
        """So many nodes, which are all there from the start."""
        self.nodes = [SimulatedNode(f"n{number:02d}", records) for number in range(count)]
        self._waiting: Sequence[SimulatedNode] = self.nodes

    def __call__(self, spec: SweepSpec, options: ClusterOptions) -> Self:
        """Gives them to the driver."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    async def find(self) -> Sequence[SimulatedNode]:
        """All of them, once."""
        found, self._waiting = self._waiting, ()
        return found

    def let_be(self) -> None:
        """See ``scheduler.driver.Nodes``."""

    @property
    def work_s(self) -> float:
        """What they worked themselves."""
        return sum(node.work_s for node in self.nodes)


def lay_results(plan: Plan, records: Records, objects: Path, left: int, head: bytes = b"") -> int:
    """Writes the commits of all attempts but the last ones, as files, and their index.

    Args:
        plan: of the sweep.
        records: how its attempts end.
        objects: the folder of a file store, or of the S3 server's objects.
        left: attempts that have no commit.
        head: what each file begins with there.

    Returns:
        How many commits were written.
    """
    done = plan.attempts[: len(plan.attempts) - left]
    index = IndexWriter(plan.sweep, 1)
    for counter, each in enumerate(done, 1):
        made = records.record(each.attempt, each.index, each.cell, Epoch(1, counter))
        document = json.dumps(made, sort_keys=True).encode() + b"\n"
        _lay(objects / result_key(plan.sweep, each.attempt), head + document)
        index.add(each.attempt, *_told(made))
    while (segment := index.take()) is not None:
        _lay(objects / segment[0], head + segment[1])
    return len(done)


def _told(made: dict[str, Any]) -> Any:
    cause = Cause(made["cause"])
    return outcome_of(cause, Phase.SEAL, "").verdict, cause


def _lay(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
