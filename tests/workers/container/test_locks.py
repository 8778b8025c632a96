from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from workers.container.calls import CallTimeoutError, Deadline
from workers.container.locks import Holds, lock_file, node_directory, node_lock, unheld

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    inside = []

    async def one(name: str) -> None:
        async with node_lock(tmp_path, "a", Deadline("lock", 30)):
            inside.append(f"{name} in")
            await asyncio.sleep(0)
            inside.append(f"{name} out")

    async def scenario() -> None:
        await asyncio.gather(one("x"), one("y"))

    asyncio.run(scenario())
    assert inside in (["x in", "x out", "y in", "y out"], ["y in", "y out", "x in", "x out"])


def test_another_process_holds_it_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with node_lock(tmp_path, "b", Deadline("lock b", 30)):
            pass  # another name, another lock
        with pytest.raises(CallTimeoutError, match="lock a"):
            async with node_lock(tmp_path, "a", Deadline("lock a", 0.05)):
                pass

    command = [sys.executable, "-c", HOLDER, str(lock_file(tmp_path, "a"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        asyncio.run(scenario())
        holder.communicate(b"")

    async def again() -> None:
        async with node_lock(tmp_path, "a", Deadline("lock a", 30)):
            pass

    asyncio.run(again())


def test_the_node_directory_is_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert node_directory() == node_directory()
    assert node_directory().parent == tmp_path


def test_what_somebody_holds_is_not_free_until_all_have_let_go(tmp_path: Path) -> None:
    one, two = Holds(tmp_path), Holds(tmp_path)
    assert one.hold("a")
    assert two.hold("a")
    assert one.hold("a")
    for held in (one, two):
        with unheld(tmp_path, "a") as free, unheld(tmp_path, "b") as other:
            assert not free
            assert other
        held.close()
    with unheld(tmp_path, "a") as free:
        assert free
        assert not one.hold("a"), "nobody begins to use what is being removed"
    assert one.hold("a")
    one.close()
