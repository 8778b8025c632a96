"""One measurement of the scheduler, as a process of its own: its memory is nobody else's.

Takes a ``Task`` as JSON on the command line, and writes a ``Measured`` to standard output.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from scheduler.bench.simulated import SLOTS, Records, SimulatedNodes
from scheduler.commit import Ledger, Rebuilt
from scheduler.driver import drive, fill_queue
from scheduler.manifest import Overrides, load_sweep
from scheduler.plan import Plan, make_plan
from scheduler.queue import WorkQueue
from scheduler.stop import StopSignal
from scheduler.view import SweepView
from workers.contract.base import Strict, sha256_hex
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord
from workers.storage import open_store

SWEEP_FILE = Path("sweeps/large-k.yaml")
"""Ten tasks under five conditions; below the manifests folder."""
CELLS = 50
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


class Task(Strict):
    """What is to be measured."""

    what: Literal["run", "resume", "plan"]
    manifests: str
    store: str
    """URL."""
    folder: str
    """For logs."""
    attempts: int
    nodes: int
    seed: int


class Measured(Strict):
    """What one took; seconds, of the CPU unless they are of the clock."""

    attempts: int
    """Of the sweep: a multiple of its cells."""
    wall_s: float
    cpu_s: float
    """Of the driver alone: what simulated nodes did is taken off."""
    reference_s: float = 0.0
    """The queue alone, or the ids alone."""
    resting_mb: float = 0.0
    """Memory before anything of the sweep was there."""
    most_mb: float = 0.0
    """The most that the process ever had."""
    committed: int = 0


def make(task: Task) -> Plan:
    """The plan of a sweep of at least so many attempts."""
    sweep = load_sweep(
        Path(task.manifests) / SWEEP_FILE, Overrides(attempts=max(1, -(-task.attempts // CELLS)))
    )
    return make_plan(sweep, started_at=STARTED, environment={"APIARY_STORE": task.store})


@dataclass
class Timer:
    """Seconds of the clock and of this process's CPU."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Adds what passes while it is open."""
        wall, cpu = time.monotonic(), time.process_time()
        yield
        self.wall_s += time.monotonic() - wall
        self.cpu_s += time.process_time() - cpu


@dataclass
class Told:
    """An observer that counts."""

    ended_tries: int = 0
    notes: list[str] = field(default_factory=list)

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        self.ended_tries += 1

    def note(self, text: str) -> None:
        """See ``Observer``."""
        self.notes.append(text)


def run(task: Task) -> Measured:
    """A whole sweep by simulated nodes, from the driver's claim to its end."""
    resting = resident_mb()
    plan = make(task)
    cells = {cell.cell: cell for cell in plan.cells}
    nodes = SimulatedNodes(task.nodes, Records(plan.sweep, cells, task.seed))
    told, timer = Told(), Timer()
    with timer.running():
        end = asyncio.run(
            drive(
                plan,
                task.store,
                n_concurrent=None,
                ray_address="simulated",
                observer=told,
                stop=StopSignal(),
                home=Path(task.folder),
                open_nodes=nodes,
            )
        )
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if end.state != "settled" or told.ended_tries != len(plan.attempts):
        raise SystemExit(f"{end.state}: {end.reason}; {told.ended_tries} tries; {told.notes}")
    return Measured(
        attempts=len(plan.attempts),
        wall_s=timer.wall_s,
        cpu_s=timer.cpu_s - nodes.work_s,
        reference_s=queue_alone(plan),
        resting_mb=resting,
        most_mb=most_mb,
        committed=told.ended_tries,
    )


def queue_alone(plan: Plan) -> float:
    """CPU seconds for the same attempts in the state machine alone, without a driver around it."""
    cells = {cell.cell: cell for cell in plan.cells}
    records = Records(plan.sweep, cells, 0)
    ends = {name: records.example(cell, Cause.NONE) for name, cell in cells.items()}
    gc.collect()
    timer = Timer()
    with timer.running():
        queue = fill_queue(plan, cells, Rebuilt({}, {}), 1)
        while leases := queue.lease("n00", SLOTS, 0.0):
            for lease in leases:
                told = {"attempt": lease.attempt, "try_": str(lease.epoch)}
                queue.ended(ends[lease.cell].model_copy(update=told), 0.0)
    return timer.cpu_s


def resume(task: Task) -> Measured:
    """What a driver does before its first lease, where commits are in the store already."""
    plan = make(task)

    async def rebuilt() -> tuple[Rebuilt, WorkQueue]:
        async with Ledger(open_store(task.store), plan.sweep) as ledger:
            ledger.begin(2)
            found = await ledger.rebuild(plan.attempts, 2)
            return found, fill_queue(plan, {cell.cell: cell for cell in plan.cells}, found, 2)

    timer = Timer()
    with timer.running():
        found, queue = asyncio.run(rebuilt())
    counts = queue.counts().values()
    if sum(each.passed + each.failed for each in counts) != len(found.committed):
        raise SystemExit("the queue and the store disagree")
    return Measured(
        attempts=len(plan.attempts),
        wall_s=timer.wall_s,
        cpu_s=timer.cpu_s,
        committed=len(found.committed),
    )


def plan_alone(task: Task) -> Measured:
    """The plan; the reference is a hash for every attempt."""
    timer, hashing = Timer(), Timer()
    with timer.running():
        plan = make(task)
    with hashing.running():
        for each in plan.attempts:
            sha256_hex(f"{plan.sweep}\0{each.cell}\0{each.cell}\0{each.index}".encode())
    return Measured(
        attempts=len(plan.attempts),
        wall_s=timer.wall_s,
        cpu_s=timer.cpu_s,
        reference_s=hashing.cpu_s,
    )


def resident_mb() -> float:
    """Memory of this process that is in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


WAYS: dict[str, Callable[[Task], Measured]] = {"run": run, "resume": resume, "plan": plan_alone}

if __name__ == "__main__":
    asked = Task.from_json(sys.argv[1], "task")
    sys.stdout.write(WAYS[asked.what](asked).to_json() + "\n")
