"""Everything in a control group but one process dies, whatever it does about it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.container import hostile
from tests.workers.container.engines import Bench, docker, eventually, spec
from workers.container import cgroup, door, freezer
from workers.container.cgroup import Group
from workers.container.interface import ContainerLostError

IDLE = ("python3", "-c", "import signal, time\nwhile True: time.sleep(1000)")
"""A first process that does nothing; orphans are left to it as dead entries."""


def group_2() -> Path | None:
    """Where this kernel has control groups of version 2."""
    mounts = cgroup.cgroup_mounts(Path("/proc/self/mountinfo").read_text())
    return next((Path(place) for place, _, kind, _ in mounts if kind == "cgroup2"), None)


@contextlib.contextmanager
def version_2() -> Iterator[Group]:
    """A group of version 2 with one below it; what is in them is killed in the end."""
    root = group_2()
    assert root is not None, "this kernel has no control groups of version 2"
    path = f"/apiary-test-{secrets.token_hex(6)}"
    folder = root / path.lstrip("/")
    (folder / "below").mkdir(parents=True)
    group = Group(2, path, folder)
    try:
        yield group
    finally:
        (folder / "cgroup.kill").write_text("1")
        eventually(lambda: not group.pids())
        (folder / "below").rmdir()
        folder.rmdir()


def enter(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    """Starts a command inside a control group."""
    script = f'echo $$ > {folder}/cgroup.procs; exec "$@"'
    return subprocess.Popen(["sh", "-c", script, "sh", *command], stdout=subprocess.DEVNULL)


@pytest.mark.long
def test_version_2_spares_one_and_takes_the_groups_below() -> None:
    with version_2() as group:
        spared = enter(group.folder, "sleep", "1000")
        others = [
            enter(group.folder, "sh", "-c", hostile.DOUBLE_FORK + "; sleep 1000"),
            enter(group.folder / "below", "sleep", "1000"),
        ]
        eventually(lambda: len(group.pids()) >= 5)
        done = freezer.kill_all(group, spared.pid, 10.0)
        assert done.survivors == ()
        assert len(done.killed) >= 4
        assert {"sleep 1000"} <= {process.command for process in done.killed}
        assert group.pids() == {spared.pid}
        assert spared.poll() is None
        assert [other.wait(10) for other in others] == [-signal.SIGKILL] * 2
        assert (group.folder / "cgroup.freeze").read_text() == "0\n"
        spared.kill()
        spared.wait(10)


@pytest.mark.long
def test_a_stranger_is_never_killed() -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    group = Group(1, "/docker/" + "f" * 64, Path("/nowhere"))
    try:
        assert not group.holds(stranger.pid)
        assert not freezer._kill(group, stranger.pid)
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n", timeout=10)
    assert stranger.returncode == 0
    assert not freezer._kill(group, stranger.pid)


def test_what_cannot_be_frozen_here_is_told(tmp_path: Path) -> None:
    group = Group(1, "/docker/" + "f" * 64, tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        freezer.kill_all(group, 1, 1.0)


def test_this_process_is_nobodys_first() -> None:
    assert not cgroup.is_first(os.getpid())
    assert not cgroup.is_first(2**22 + 1)
    with pytest.raises(ContainerLostError, match="is not its first"):
        door.kill_all(os.getpid(), "f" * 64, 1.0)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("commands", "least"),
    [
        ([], 0),
        ([hostile.DOUBLE_FORK, hostile.REWRITER], 2),
        ([hostile.FORK_BOMB], 200),
        ([hostile.DOUBLE_FORK] * 3 + [hostile.FORK_BOMB], 200),
    ],
    ids=["idle", "detached", "bomb", "all"],
)
def test_nothing_but_the_first_process_is_left(
    bench: Bench, commands: list[str], least: int
) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec(*IDLE), 60)
            pid = int(engine.api.inspect(it.id, 20)["State"]["Pid"])
            for command in commands:
                docker("exec", it.id, "sh", "-c", command)
            group = cgroup.group_of(pid, it.id, "freezer")
            assert group is not None
            await asyncio.to_thread(eventually, lambda: len(group.pids()) > least)
            started = time.perf_counter()
            done = await it.kill_all(20)
            seconds = time.perf_counter() - started
            sys.stdout.write(f"{len(done.killed)} killed in {seconds * 1000:.1f} ms\n")
            assert done.survivors == ()
            assert len(done.killed) >= least
            assert group.pids() == {pid}
            assert [process.pid for process in await it.processes(20)] == [pid]
            assert await it.ended(0) is None
            # It was thawed, and new commands run in it.
            assert docker("exec", it.id, "echo", "here") == "here"
            await it.remove(60)

    asyncio.run(scenario())


@pytest.mark.docker
def test_another_container_is_left_alone(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            one = await engine.start(spec(*IDLE), 60)
            other = await engine.start(spec(*IDLE), 60)
            for each in (one, other):
                docker("exec", each.id, "sh", "-c", hostile.DOUBLE_FORK)
            pid = int(engine.api.inspect(other.id, 20)["State"]["Pid"])
            with pytest.raises(ContainerLostError, match="is not its first"):
                door.kill_all(pid, one.id, 5.0)
            assert (await one.kill_all(20)).killed
            assert len(await other.processes(20)) > 1
            await one.kill(60)
            with pytest.raises(ContainerLostError, match="it has ended"):
                await one.kill_all(5)
            await one.remove(60)
            await other.remove(60)

    asyncio.run(scenario())


UNPRIVILEGED = """
import os, sys
from workers.container import door
from workers.container.interface import NoDoorError
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
try:
    door.kill_all(int(sys.argv[1]), sys.argv[2], 5.0)
except NoDoorError as error:
    print(error)
"""


@pytest.mark.docker
def test_without_the_privilege_nothing_is_killed(bench: Bench) -> None:
    async def scenario() -> str:
        async with bench.engine() as engine:
            it = await engine.start(spec(*IDLE), 60)
            pid = engine.api.inspect(it.id, 20)["State"]["Pid"]
            docker("exec", it.id, "sh", "-c", hostile.DOUBLE_FORK)
            command = [sys.executable, "-c", UNPRIVILEGED, str(pid), it.id]
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, timeout=60
            )
            assert len(await it.processes(20)) > 1
            await it.remove(60)
            return done.stdout + done.stderr

    assert "Permission denied: it needs root" in (said := asyncio.run(scenario())), said
