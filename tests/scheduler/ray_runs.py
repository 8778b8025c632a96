"""Runs of ``ray_sweep`` as processes of their own, and a cluster for them to share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scheduler.builders import SWEEP, attempts, cells
from workers.contract.result import TryRecord, result_key

ROOT = Path(__file__).parents[2]
MARK = "APIARY_TEST_RUN"
"""A variable that everything a run starts inherits, so that it can be found."""

PATIENCE_S = 150.0
"""For a whole run on a machine that others use too."""


class Run:
    """A run of ``ray_sweep`` in a process group of its own."""

    def __init__(self, folder: Path, count: int, *more: str, **environment: str) -> None:
        self.folder = folder
        self.count = count
        self.mark = f"{os.getpid()}-{folder}-{time.monotonic_ns()}"
        self.outcome = environment.get("OUTCOME", "outcome.json")
        self.out, self.err = (folder / "stdout").open("a+"), (folder / "stderr").open("a+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.scheduler.ray_sweep", str(folder), str(count), *more],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.err,
            env={**os.environ, MARK: self.mark, **environment},
            start_new_session=True,
        )

    def wait(self) -> dict[str, Any]:
        """Waits for its end and gives its outcome."""
        self.process.wait(PATIENCE_S)
        outcome: dict[str, Any] = json.loads((self.folder / self.outcome).read_text())
        return outcome

    def wait_until_running(self, trials: int = 1) -> None:
        """Waits until so many trials have been started, and the driver knows of one."""

        def runs() -> bool:
            assert self.process.poll() is None, self.terminal()
            return (self.folder / "running").exists() and len(self.starts()) >= trials

        wait_for(runs)

    def wait_for_note(self, part: str) -> None:
        """Waits until the observer was told a sentence with this part."""
        notes = self.folder / "notes"
        wait_for(lambda: notes.exists() and part in notes.read_text())

    def set(self, name: str, value: object) -> None:
        """Writes a file that simulated trials read."""
        (self.folder / f"{name}.new").write_text(str(value))
        (self.folder / f"{name}.new").rename(self.folder / name)

    def starts(self) -> list[tuple[str, str, int]]:
        """Every trial that was started: attempt, try, and the node's process."""
        path = self.folder / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(a, t, int(pid)) for a, t, pid in (line.split() for line in lines)]

    def kill(self) -> None:
        """SIGKILL, and its end."""
        self.process.kill()
        self.process.wait(10.0)

    def signal_group(self, number: int) -> None:
        """Signals everything in its process group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def terminal(self) -> str:
        """What it wrote to standard output and standard error."""
        return (self.folder / "stdout").read_text() + (self.folder / "stderr").read_text()

    def processes(self) -> list[tuple[int, str]]:
        """What still runs of all that it started."""
        return marked(self.mark)

    def end(self) -> None:
        """Ends what a failed test would leave."""
        for pid, _ in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10.0)
        self.out.close()
        self.err.close()


def marked(mark: str) -> list[tuple[int, str]]:
    """The processes whose environment holds a mark, with the beginning of their titles."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append((int(entry.name), title[:200]))
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "it did not come true"
        time.sleep(0.05)


def committed(run: Run, count: int) -> int:
    """How many of the attempts are committed."""
    return len(commits(run, count))


def commits(run: Run, count: int) -> dict[str, str]:
    """The committed attempts, and the try of each."""
    found = {}
    for each in attempts(cells(conditions=2, tasks=2), count):
        path = run.folder / "store" / result_key(SWEEP, each.attempt)
        if path.exists():
            found[each.attempt] = TryRecord.from_json(path.read_bytes(), str(path)).try_
    return found


def assert_nothing_left(run: Run) -> None:
    """Neither process nor folder."""
    assert run.processes() == []
    assert not list(Path(tempfile.gettempdir()).glob(f"apiary-ray-{run.process.pid}-*"))


def assert_each_counted_once(run: Run, *outcomes: dict[str, Any]) -> None:
    """Every attempt is committed, and one driver was told of one verdict for it."""
    planned = {each.attempt for each in attempts(cells(conditions=2, tasks=2), run.count)}
    assert set(commits(run, run.count)) == planned
    counted = Counter(
        a for each in outcomes for a, _, verdict in each["tries"] if verdict == "pass"
    )
    assert set(counted.values()) <= {1}, counted


@dataclass(frozen=True)
class RayCluster:
    """A cluster that outlives its drivers."""

    address: str
    environment: dict[str, str]
    """Of its drivers."""
    mark: str

    def processes(self, part: str) -> list[int]:
        """Its processes whose titles have this part."""
        return [pid for pid, title in marked(self.mark) if part in title]

    def actors(self) -> list[int]:
        """The processes of node actors."""
        return self.processes("FakeNodeActor")


@contextlib.contextmanager
def ray_cluster(folder: Path) -> Iterator[RayCluster]:
    """Three Ray nodes on this machine."""
    token, address = folder / "token", folder / "address"
    token.write_text("0123456789abcdef" * 4)
    environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    mark = f"{os.getpid()}-cluster-{time.monotonic_ns()}"
    with (
        (folder / "cluster.log").open("w") as log,
        # Not in the test's folder: sockets are below it, and their paths must be short.
        tempfile.TemporaryDirectory(prefix="ar-", ignore_cleanup_errors=True) as ray_folder,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.scheduler.ray_cluster", str(address)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                **environment,
                "RAY_TMPDIR": ray_folder,
                "APIARY_NODE_METRICS": "127.0.0.1:0",
                MARK: mark,
            },
        )
        assert process.stdin is not None
        try:
            wait_for(address.exists)
            yield RayCluster(address.read_text(), environment, mark)
        finally:
            process.stdin.close()
            try:
                process.wait(PATIENCE_S / 5)
            finally:
                # Where a test killed Ray's servers, its cluster cannot end in an orderly way.
                for pid, _ in marked(mark):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait(10.0)
                wait_for(lambda: not marked(mark))
