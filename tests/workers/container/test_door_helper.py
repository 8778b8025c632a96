"""A worker without any privilege acts through the helper, and the helper for nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.base_image import base_image
from tests.workers.container import hostile
from tests.workers.container.engines import Bench, docker, spec
from tests.workers.container.test_freezer import IDLE
from workers.container import door_wire
from workers.container.door_helper import HelperError, main, opened
from workers.container.doors import Doors
from workers.container.interface import ContainerError, ContainerLostError, NoDoorError

pytestmark = pytest.mark.docker

NOBODY = 65534
CLIENT = """
import os, sys
from pathlib import Path
from workers.container.doors import Doors
from workers.container.interface import ContainerError
uid, helper, act, pid, container = int(sys.argv[1]), *sys.argv[2:]
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
effective = next(l for l in open("/proc/self/status") if l.startswith("CapEff"))
assert int(effective.split()[1], 16) == 0, effective
doors = Doors(Path(helper) if helper else None)
try:
    if act == "listen":
        listener = doors.listen(int(pid), container, 3600)
        print("listening", listener.getsockname(), os.get_inheritable(listener.fileno()))
        link, _ = listener.accept()
        link.recv(65536)
        link.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nfrom a worker without privilege")
        link.close()
    else:
        done = doors.kill_all(int(pid), container, 10.0)
        print(len(done.killed), "killed,", len(done.survivors), "survive")
except ContainerError as error:
    print(type(error).__name__, error)
"""
"""A worker that has given up its user, and with it every capability."""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="door-") as made:
        os.chmod(made, 0o755)
        yield Path(made)


@contextlib.contextmanager
def helper(path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A helper's process that serves."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "workers.container.door_helper", "--socket", str(path)),
            *arguments,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "the door is open" in (line := process.stderr.readline()), line
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert not path.exists()


def client(uid: int, path: Path | str, act: str, container: str, pid: int = 2**22 + 1) -> str:
    """What an unprivileged worker is told."""
    command = [sys.executable, "-c", CLIENT, str(uid), str(path), act, str(pid), container]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + (done.stderr if done.returncode else "")


def test_a_worker_without_capabilities_listens_and_kills(bench: Bench) -> None:
    async def scenario() -> None:
        with folder() as place, helper(place / "door", "--allow-uid", str(NOBODY)):
            async with bench.engine() as engine:
                it = await engine.start(spec(*IDLE), 60)
                pid = int(engine.api.inspect(it.id, 20)["State"]["Pid"])
                docker("exec", it.id, "sh", "-c", hostile.DOUBLE_FORK)
                without = await asyncio.to_thread(client, NOBODY, "", "listen", it.id, pid)
                assert without.startswith("NoDoorError"), without
                assert "APIARY_DOOR" in without
                listening = asyncio.create_task(
                    asyncio.to_thread(client, NOBODY, place / "door", "listen", it.id, pid)
                )
                fetch = (
                    "import time\nfrom urllib.request import urlopen\n"
                    "for _ in range(3000):\n"
                    "    try: print(urlopen('http://localhost:3600').read()); break\n"
                    "    except OSError: time.sleep(0.01)"
                )
                said = await asyncio.to_thread(docker, "exec", it.id, "python3", "-c", fetch)
                assert "from a worker without privilege" in said
                assert "listening ('127.0.0.1', 3600) False" in await listening
                # From another PID namespace the worker does not even see the process.
                killed = await asyncio.to_thread(client, NOBODY, place / "door", "kill_all", it.id)
                assert killed.endswith("killed, 0 survive\n"), killed
                assert not killed.startswith("0 "), killed
                assert [process.pid for process in await it.processes(20)] == [pid]
                await it.remove(60)

    asyncio.run(scenario())


def test_other_users_and_other_containers_are_refused(bench: Bench) -> None:
    async def scenario() -> None:
        with folder() as place, helper(place / "door", "--allow-uid", str(NOBODY)):
            stranger = docker("run", "--detach", base_image(), "sleep", "1000")
            try:
                async with bench.engine() as engine:
                    it = await engine.start(spec(*IDLE), 60)
                    said = client(NOBODY - 1, place / "door", "kill_all", it.id)
                    assert f"uid {NOBODY - 1} may not ask" in said
                    for act in ("kill_all", "listen"):
                        said = client(NOBODY, place / "door", act, stranger)
                        assert "it is none of Apiary's" in said, said
                        said = client(NOBODY, place / "door", act, "f" * 64)
                        assert said.startswith("ContainerLostError"), said
                        assert "the engine has none" in said
                    said = client(NOBODY, place / "door", "listen", it.id[:12])
                    assert "64 hex digits" in said, said
                    await it.kill(60)
                    said = client(NOBODY, place / "door", "listen", it.id)
                    assert "it does not run" in said, said
                    await it.remove(60)
                assert docker("inspect", "--format", "{{.State.Running}}", stranger) == "true"
            finally:
                docker("rm", "--force", stranger)

    asyncio.run(scenario())


def connected(path: Path) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(str(path))
    link.settimeout(30)
    return link


def test_slow_and_broken_clients_stall_nobody(bench: Bench) -> None:
    async def scenario() -> None:
        with folder() as place, helper(place / "door"), contextlib.ExitStack() as stack:
            path = place / "door"
            async with bench.engine() as engine:
                it = await engine.start(spec(*IDLE), 60)
                idle = [stack.enter_context(connected(path)) for _ in range(200)]
                half = stack.enter_context(connected(path))
                half.sendall(b'{"version": 1, ')
                started = time.monotonic()
                doors = Doors(path)
                # The pid is no process here, so the helper is asked.
                await asyncio.to_thread(lambda: doors.listen(2**22 + 1, it.id, 3600).close())
                done = await asyncio.to_thread(doors.kill_all, 2**22 + 1, it.id, 5.0)
                assert done.survivors == ()
                assert time.monotonic() - started < 4.0, "it waited for clients that do not ask"
                # Those that do not ask are hung up on, whether they are many or late.
                assert await asyncio.to_thread(idle[0].recv, 1) == b""
                assert await asyncio.to_thread(half.recv, 1) == b""
                for line in (b"x" * 600, b"[]\n", b'{"version": 1}\n', b"\xff\xfe\n", b"\n"):
                    with connected(path) as link:
                        link.sendall(line)
                        answer = await asyncio.to_thread(link.recv, 4096)
                        assert json.loads(answer)["fault"] == "failed", answer
                await it.remove(60)

    asyncio.run(scenario())


def test_a_dead_helpers_socket_is_taken_over_and_a_living_ones_is_not() -> None:
    with folder() as place:
        path = place / "door"
        with (
            helper(path),
            pytest.raises(HelperError, match="another door helper"),
            opened(path, shared=False),
        ):
            pass
        with helper(path) as process:
            process.kill()
            process.wait(10)
            assert path.exists()
            with pytest.raises(NoDoorError, match="refused"):
                Doors(path).kill_all(2**22 + 1, "f" * 64, 1.0)
            with opened(path, shared=False):
                assert path.stat().st_mode & 0o777 == 0o600
            process.returncode = 0  # for the end of the block: it was not to end well
        path.write_text("kept")
        assert main(["--socket", str(path)]) == 1
        assert path.read_text() == "kept"
        assert main(["--socket", str(place / "no" / "door")]) == 1
        assert main(["--socket", str(place / ("x" * 200))]) == 1


@contextlib.contextmanager
def odd_helper(answer: bytes) -> Iterator[Path]:
    """Something on a socket that answers as no helper does."""

    def serve() -> None:
        link, _ = listener.accept()
        link.recv(door_wire.REQUEST_BYTES)
        with contextlib.suppress(OSError):
            link.sendall(answer)
        link.close()

    with folder() as place, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place / "door"))
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield place / "door"
        thread.join(30)


@pytest.mark.parametrize(
    "answer",
    [b"", b"{", b"{}\n", b'{"version": 1}\n', b"x" * (door_wire.ANSWER_BYTES + 1), b"[]\n"],
)
def test_an_answer_that_is_none_is_an_error(answer: bytes) -> None:
    with odd_helper(answer) as path, pytest.raises(ContainerError, match="door helper at"):
        Doors(path).listen(2**22 + 1, "f" * 64, 3600)


def test_without_a_helper_the_own_error_stands() -> None:
    with pytest.raises(ContainerLostError, match="no process"):
        Doors().listen(2**22 + 1, "f" * 64, 3600)
