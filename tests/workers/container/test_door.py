from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys

import pytest

from tests.base_image import base_image
from tests.workers.container.engines import Bench, docker, eventually, spec
from workers.container import door
from workers.container.interface import ContainerLostError

UNPRIVILEGED = """
import sys
from workers.container import door
from workers.container.interface import ContainerError
try:
    door.listen(int(sys.argv[1]), sys.argv[2], 3600)
except ContainerError as error:
    print(error)
"""


def test_a_process_that_does_not_exist_is_no_container() -> None:
    with pytest.raises(ContainerLostError, match="no process"):
        door.listen(2**22 + 1, "f" * 64, 3600)


def test_a_process_outside_is_no_container() -> None:
    with pytest.raises(ContainerLostError, match=f"process {os.getpid()} is not the container's"):
        door.listen(os.getpid(), "f" * 64, 3600)


@pytest.mark.docker
def test_a_process_of_another_container_is_refused(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            one = await engine.start(spec("sleep", "1000"), 60)
            other = await engine.start(spec("sleep", "1000"), 60)
            pid = int(engine.api.inspect(other.id, 20)["State"]["Pid"])
            with pytest.raises(ContainerLostError, match="not the container's"):
                door.listen(pid, one.id, 3600)
            await one.remove(60)
            await other.remove(60)

    asyncio.run(scenario())


@pytest.mark.docker
def test_the_host_itself_is_never_listened_on(bench: Bench) -> None:
    label = f"apiary.node={bench.node}"
    container = docker(
        *("run", "--detach", "--network", "host", "--label", label),
        *(base_image(), "sleep", "1000"),
    )
    try:
        pid = int(docker("inspect", "--format", "{{.State.Pid}}", container))
        with pytest.raises(door.ContainerError, match="shares the network namespace of the host"):
            door.listen(pid, container, 3600)
    finally:
        docker("rm", "--force", container)


@pytest.mark.docker
def test_without_the_privilege_the_error_names_it(bench: Bench) -> None:
    async def scenario() -> str:
        async with bench.engine() as engine:
            container = await engine.start(spec("sleep", "1000"), 60)
            pid = engine.api.inspect(container.id, 20)["State"]["Pid"]
            command = ["setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", UNPRIVILEGED]
            done = await asyncio.to_thread(
                subprocess.run,
                [*command, str(pid), container.id],
                capture_output=True,
                text=True,
                timeout=60,
            )
            await container.remove(60)
            return done.stdout + done.stderr

    assert "no privilege" in (said := asyncio.run(scenario())), said
    assert "CAP_SYS_ADMIN" in said


def thread_namespaces() -> set[int]:
    """The network namespaces of this process's threads."""
    found = set()
    for name in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.add(os.stat(f"/proc/self/task/{name}/ns/net").st_ino)
    return found


@pytest.mark.docker
def test_this_process_stays_in_its_own_namespace(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            before = os.stat("/proc/self/ns/net").st_ino
            container = await engine.start(spec("sleep", "1000"), 60)
            for port in range(3600, 3610):
                container.listen(port).close()
            # A thread that was joined may take the kernel a moment to end.
            eventually(lambda: thread_namespaces() == {before})
            await container.remove(60)

    asyncio.run(scenario())
