"""What the scheduler costs: sweeps of two sizes by simulated nodes, resuming, and planning.

Each measurement is a process of its own. The reference of a driver is the queue alone: the same
attempts through the state machine, without store, journal, formats and event loop.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler.bench import simulated_sweep
from scheduler.bench.figure import Figure
from scheduler.bench.processes import BenchError
from scheduler.bench.servers import BucketServer
from scheduler.bench.simulated import Records, lay_results
from scheduler.bench.simulated_sweep import Measured, Task
from scheduler.bench.surroundings import bench_environment, bucket_credentials
from scheduler.plan import Plan
from scheduler.settings import Settings

WITHIN_S = 3600.0
"""For one measurement, however slow the machine is."""
MOST_MB = 500.0
"""Promised of the driver."""
OBJECT_HEAD = b"{}\n"
"""With which the S3 server's files begin."""
PAGE = 1000
"""Keys in one answer to a listing."""
LEFT = 0.01
"""The share of attempts that are open when a sweep is resumed."""

Say = Callable[[str], None]


class SchedulerBench:
    """Measures in a scratch folder. A context manager, which removes it."""

    def __init__(
        self, manifests: Path, settings: Settings, *, nodes: int, seed: int, say: Say
    ) -> None:
        """Measures nothing yet.

        Args:
            manifests: the folder of the project.
            settings: of the command that measures.
            nodes: simulated ones in a sweep.
            seed: of the attempts' ends.
            say: hears what is done.
        """
        self._manifests = manifests.absolute()
        self._nodes = nodes
        self._seed = seed
        self._say = say
        self._folder = Path(tempfile.mkdtemp(prefix="apiary-bench-"))
        self._environment = bench_environment(self._folder, settings)

    def __enter__(self) -> SchedulerBench:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Removes what it wrote."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def figures(self, small: int, large: int, rounds: int) -> list[Figure]:
        """Everything, in the order in which it is promised.

        Args:
            small: attempts of a sweep.
            large: attempts of another one.
            rounds: how often each is run, by turns.

        Raises:
            BenchError: a process failed.
        """
        runs: dict[int, list[Measured]] = {small: [], large: []}
        for number in range(rounds):
            for attempts, found in runs.items():
                self._say(f"round {number + 1} of {rounds}: {attempts:,} attempts")
                found.append(self._run(attempts))
        plans = [self._measured("plan", large) for _ in range(rounds)]
        return [
            *self._of_runs(runs[small]),
            *self._of_runs(runs[large]),
            Figure.by_turns(
                "driver, growth",
                [_micros(each) for each in runs[large]],
                [_micros(each) for each in runs[small]],
                "µs an attempt",
                f"the same at {small:,}",
            ),
            Figure.by_turns(
                f"plan of {large:,}",
                [each.cpu_s for each in plans],
                [each.reference_s for each in plans],
                "s",
                "a hash for each attempt",
            ),
            *self._resumes(large),
        ]

    def _of_runs(self, runs: list[Measured]) -> list[Figure]:
        name = f"{runs[0].attempts:,}"
        return [
            Figure.by_turns(
                f"throughput, {name}",
                [each.attempts / each.wall_s for each in runs],
                [each.attempts / each.reference_s for each in runs],
                "attempts/s",
                "queue alone",
            ),
            Figure.by_turns(
                f"driver, {name}",
                [_micros(each) for each in runs],
                [1e6 * each.reference_s / each.attempts for each in runs],
                "µs an attempt",
                "queue alone",
            ),
            Figure.of(
                f"memory, {name}",
                [each.most_mb for each in runs],
                "MB",
                MOST_MB,
                "promised at most",
            ),
        ]

    def _run(self, attempts: int) -> Measured:
        store = self._folder / "run"
        try:
            return self._measured("run", attempts, store.as_uri())
        finally:
            shutil.rmtree(store, ignore_errors=True)

    # Resuming

    def _resumes(self, attempts: int) -> list[Figure]:
        store = self._folder / "results"
        plan = simulated_sweep.make(self._task("resume", attempts, store.as_uri()))
        left = max(1, int(LEFT * len(plan.attempts)))
        self._say(f"resuming with {len(plan.attempts) - left:,} results in a file store")
        done = self._lay(plan, store, left)
        bare_s = _listed(store)
        figures = self._resume("resume, files", attempts, store.as_uri(), bare_s)
        shutil.rmtree(store / "sweeps" / plan.sweep / "index")
        figures += self._resume("resume, files, no index", attempts, store.as_uri(), bare_s)
        shutil.rmtree(store)
        self._say(f"resuming with {done:,} results on S3")
        with self._bucket() as bucket:
            self._lay(plan, bucket.objects / "bench", left, OBJECT_HEAD)
            figures += self._resume("resume, S3", attempts, bucket.url, None)
            figures.append(
                Figure.one(
                    "resume, S3: listings",
                    bucket.listings(),
                    "calls",
                    -(-done // PAGE),
                    "pages of the results alone",
                )
            )
        return figures

    def _lay(self, plan: Plan, objects: Path, left: int, head: bytes = b"") -> int:
        records = Records(plan.sweep, {cell.cell: cell for cell in plan.cells}, self._seed)
        return lay_results(plan, records, objects, left, head)

    def _resume(self, name: str, attempts: int, store: str, bare_s: float | None) -> list[Figure]:
        found = self._measured("resume", attempts, store)
        against = "a bare walk over the files" if bare_s else ""
        return [
            Figure.one(name, found.wall_s, "s", bare_s, against),
            Figure.one(f"{name}: CPU", found.cpu_s, "s"),
        ]

    @contextmanager
    def _bucket(self) -> Iterator[BucketServer]:
        self._environment.update(bucket_credentials())
        server = BucketServer(self._folder / "bucket", self._environment, secrets.token_hex(8))
        server.up()
        try:
            yield server
        finally:
            server.kill()

    # Processes

    def _task(self, what: str, attempts: int, store: str) -> Task:
        return Task.model_validate(
            {
                "what": what,
                "manifests": str(self._manifests),
                "store": store,
                "folder": str(self._folder / "home"),
                "attempts": attempts,
                "nodes": self._nodes,
                "seed": self._seed,
            }
        )

    def _measured(self, what: str, attempts: int, store: str = "file:///nowhere") -> Measured:
        task = self._task(what, attempts, store)
        ran = subprocess.run(
            [sys.executable, "-m", simulated_sweep.__name__, task.to_json()],
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
        )
        if ran.returncode:
            raise BenchError(f"{what} of {attempts} attempts failed: {ran.stderr[-2000:]}")
        return Measured.from_json(ran.stdout, "measurement")


def _micros(run: Measured) -> float:
    """CPU microseconds of the driver for an attempt."""
    return 1e6 * run.cpu_s / run.attempts


def _listed(store: Path) -> float:
    """Seconds for the names of all files of a store."""
    timer = simulated_sweep.Timer()
    with timer.running():
        for _ in os.walk(store):
            pass
    return timer.wall_s
