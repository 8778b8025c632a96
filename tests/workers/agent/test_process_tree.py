from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workers.agent.process_tree import descendants, kill_trees, read_parents

pytestmark = pytest.mark.long

PATIENCE_S = 30.0


def eventually(claim: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < ends, "it did not come true in time"
        time.sleep(0.01)


@contextlib.contextmanager
def tree(
    script: str, marks: Path, lines: int
) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """A process that has written the pids of so many others to a file, killed in the end."""
    process = subprocess.Popen(["bash", "-c", script, "bash", str(marks)])
    eventually(lambda: marks.exists() and len(marks.read_text().split()) == lines)
    pids = set(map(int, marks.read_text().split()))
    try:
        yield process, pids
    finally:
        for pid in {process.pid, *pids}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_all_below_dies_whatever_it_ignores_and_others_do_not(tmp_path: Path) -> None:
    deep = (
        "trap '' TERM INT HUP; sleep 1000 & echo $! >> $1; "
        "setsid bash -c 'trap \"\" TERM; sleep 1000 & echo $! >> $0; echo $$ >> $0; wait' $1 & "
        "wait; sleep 1000"
    )
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        with tree(deep, tmp_path / "pids", 3) as (process, pids):
            kill_trees({process.pid})
            assert process.wait(PATIENCE_S) == -signal.SIGKILL
            # Not in a while: when the root is gone, all below it was dead.
            assert not any(map(runs, pids))
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait(PATIENCE_S)


def test_what_was_left_to_itself_lives_on(tmp_path: Path) -> None:
    service = "(setsid sleep 1000 </dev/null & echo $! >> $1); sleep 1000"
    with tree(service, tmp_path / "pids", 1) as (process, pids):
        (pid,) = pids
        eventually(lambda: read_parents()[pid] != process.pid)
        kill_trees({process.pid})
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        assert runs(pid)


def test_a_tree_that_grows_meanwhile_is_caught(tmp_path: Path) -> None:
    grower = "f() { while :; do sleep 1000 & echo $! >> $1; sleep 0.001; done; }; f $1"
    marks = tmp_path / "pids"
    process = subprocess.Popen(["bash", "-c", grower, "bash", str(marks)])
    try:
        eventually(lambda: marks.exists() and len(marks.read_text().split()) > 20)
        kill_trees({process.pid})
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        eventually(lambda: not any(runs(int(pid)) for pid in marks.read_text().split()))
    finally:
        for pid in marks.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def test_only_children_are_roots() -> None:
    assert descendants({1, os.getppid(), 2**22 + 1}, os.getpid()) == set()
    kill_trees(set())
    kill_trees({os.getppid()})
