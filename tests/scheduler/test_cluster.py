"""Nodes on a real Ray: silence on the terminal, and nothing left, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.builders import SWEEP, attempts, cells
from workers.contract.result import result_key

ROOT = Path(__file__).parents[2]
MARK = "APIARY_TEST_RUN"
"""A variable that everything a run starts inherits, so that it can be found."""

pytestmark = pytest.mark.ray

PATIENCE_S = 150.0
"""For a whole run on a machine that others use too."""


class Run:
    """A run of ``ray_sweep`` in a process group of its own."""

    def __init__(self, folder: Path, count: int, *more: str, **environment: str) -> None:
        self.folder = folder
        self.mark = f"{os.getpid()}-{folder}"
        self.out, self.err = (folder / "stdout").open("w+"), (folder / "stderr").open("w+")
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
        outcome: dict[str, Any] = json.loads((self.folder / "outcome.json").read_text())
        return outcome

    def wait_until_running(self) -> None:
        """Waits until a trial runs."""
        wait_for((self.folder / "running").exists)

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


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(count: int, *more: str, **environment: str) -> Run:
        folder = tmp_path / f"run-{len(runs)}"
        folder.mkdir()
        runs.append(Run(folder, count, *more, **environment))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "it did not come true"
        time.sleep(0.05)


def assert_nothing_left(run: Run) -> None:
    assert run.processes() == []
    assert not list(Path(tempfile.gettempdir()).glob(f"apiary-ray-{run.process.pid}-*"))


def committed(run: Run, count: int) -> int:
    store = run.folder / "store"
    planned = attempts(cells(conditions=2, tasks=2), count)
    return sum((store / result_key(SWEEP, each.attempt)).exists() for each in planned)


def test_a_sweep_survives_the_death_of_its_node_in_silence_and_leaves_nothing(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    run = start(5, DIES_ONCE=str(tmp_path / "died"))
    outcome = run.wait()
    assert outcome["state"] == "settled", outcome
    assert committed(run, 5) == 20
    causes = [cause for cause, _ in outcome["records"]]
    assert causes.count("none") == 20
    assert 1 <= causes.count("node_lost") <= 4
    assert set(causes) == {"none", "node_lost"}
    assert any("is lost" in note for note in outcome["notes"])
    assert run.terminal() == ""
    assert_nothing_left(run)
    (logs,) = (run.folder / "home" / "ray").iterdir()
    assert (logs / "ray.log").exists()


def test_ctrl_c_drains_and_a_second_one_cancels(start: Callable[..., Run]) -> None:
    run = start(50, TRIAL_S="20")
    run.wait_until_running()
    run.signal_group(signal.SIGINT)
    # The trials run on: a first request ends none of them.
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(1.5)
    run.signal_group(signal.SIGINT)
    started = time.monotonic()
    outcome = run.wait()
    assert time.monotonic() - started < 19.0
    assert outcome["state"] == "interrupted", outcome
    assert [cause for cause, _ in outcome["records"]] == ["cancelled"] * 4
    assert run.terminal() == ""
    assert_nothing_left(run)
    assert committed(run, 50) == 0


def test_a_killed_driver_leaves_no_process_and_its_sweep_is_resumed(
    start: Callable[..., Run],
) -> None:
    run = start(3, TRIAL_S="0.5")
    wait_for(lambda: committed(run, 3) > 0)
    run.process.kill()
    run.process.wait(10.0)
    wait_for(lambda: not run.processes())
    before = committed(run, 3)
    again = Run(run.folder, 3)
    try:
        outcome = again.wait()
        assert outcome["state"] == "settled", outcome
        assert committed(again, 3) == 12
        assert len(outcome["records"]) == 12 - before
        assert_nothing_left(again)
        # The folder of the killed one went when Ray was started again.
        assert_nothing_left(run)
    finally:
        again.end()


def test_a_node_that_cannot_work_ends_the_sweep_with_its_reason(
    start: Callable[..., Run],
) -> None:
    run = start(1, REFUSES="the Docker engine does not answer")
    outcome = run.wait()
    assert outcome["state"] == "infrastructure"
    assert "the Docker engine does not answer" in outcome["reason"]
    assert run.terminal() == ""
    assert_nothing_left(run)


def test_an_address_without_a_cluster_is_refused_in_a_sentence(
    start: Callable[..., Run],
) -> None:
    run = start(1, "127.0.0.1:1")
    outcome = run.wait()
    assert outcome["state"] == "refused"
    assert "no Ray cluster could be reached at 127.0.0.1:1" in outcome["reason"]
    assert_nothing_left(run)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a driver of a running cluster, its address and mark included."""
    token, address = tmp_path / "token", tmp_path / "address"
    token.write_text("0123456789abcdef" * 4)
    environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    mark = f"{os.getpid()}-cluster"
    with (
        (tmp_path / "cluster.log").open("w") as log,
        # Not in tmp_path: sockets are below it, and their paths must be short.
        tempfile.TemporaryDirectory(prefix="ar-") as folder,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.scheduler.ray_cluster", str(address)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment, "RAY_TMPDIR": folder, MARK: mark},
        )
        assert process.stdin is not None
        try:
            wait_for(address.exists)
            yield {**environment, "address": address.read_text(), "mark": mark}
        finally:
            process.stdin.close()
            process.wait(PATIENCE_S)
            wait_for(lambda: not marked(mark))


def test_a_running_cluster_is_used_node_by_node_and_left_as_it_was(
    start: Callable[..., Run], cluster: dict[str, str]
) -> None:
    address, mark = cluster.pop("address"), cluster.pop("mark")
    for count in (4, 5):
        run = start(count, address, **cluster)
        outcome = run.wait()
        assert outcome["state"] == "settled", outcome
        assert committed(run, count) == 4 * count
        assert len({node for _, node in outcome["records"]}) == 2
        assert run.terminal() == ""
        assert_nothing_left(run)
        wait_for(lambda: not any("FakeNodeActor" in title for _, title in marked(mark)))
    assert any("raylet" in title for _, title in marked(mark))
