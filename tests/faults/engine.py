"""A Docker engine of the test's own, that can be killed without hurting anybody else's.

It has a network namespace of its own: a second engine in a shared one would take the first
one's bridge and rules away. Its containerd is started beside it, as systems do that have both.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler.bench.processes import END_S, send, wait_for

UP_S = 120.0


class PrivateEngine:
    """See the module; ``private_engine`` makes and ends one."""

    def __init__(self, folder: Path, *, live_restore: bool) -> None:
        self._folder = folder
        self._containerd = folder / "containerd.sock"
        self._servers: list[subprocess.Popen[bytes]] = []
        (folder / "containerd.toml").write_text(
            "version = 2\n"
            f'root = "{folder}/containerd"\n'
            f'state = "{folder}/containerd-run"\n'
            'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
            f'[grpc]\naddress = "{self._containerd}"\n'
        )
        (folder / "daemon.json").write_text(json.dumps({"live-restore": live_restore}))

    @property
    def host(self) -> str:
        """For ``DOCKER_HOST``."""
        return f"unix://{self._folder / 'docker.sock'}"

    def up(self) -> None:
        """Starts containerd and dockerd, and waits until the engine answers."""
        (self._folder / "docker.pid").unlink(missing_ok=True)
        self._start("containerd", "--config", str(self._folder / "containerd.toml"))
        wait_for("containerd", self._containerd.exists, UP_S)
        self._start(
            "unshare", "--net", "--", "dockerd",
            "--config-file", str(self._folder / "daemon.json"),
            "--data-root", str(self._folder / "data"),
            "--exec-root", str(self._folder / "run"),
            "--pidfile", str(self._folder / "docker.pid"),
            "--containerd", str(self._containerd),
            "--host", self.host,
        )  # fmt: skip
        wait_for(f"dockerd (see {self._folder / 'log'})", self._answers, UP_S)

    def kill(self) -> None:
        """SIGKILL to both; containers' own processes run on."""
        for server in reversed(self._servers):
            server.kill()
        for server in self._servers:
            server.wait(END_S)
        self._servers.clear()
        for socket in (self._containerd, self._folder / "docker.sock"):
            socket.unlink(missing_ok=True)

    def load(self, image: str) -> None:
        """Copies an image from the machine's own engine."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(
                ["docker", "-H", self.host, "load"], stdin=saved.stdout, check=True,
                capture_output=True, timeout=UP_S,
            )  # fmt: skip
        assert saved.returncode == 0

    def end(self) -> None:
        """Ends everything of it, mounts included."""
        for server in reversed(self._servers):
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(END_S)
        self.kill()
        wait_for("its containers' processes to end", self._ended, UP_S)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            place = line.split(" ")[1]
            if place.startswith(f"{self._folder}/"):
                subprocess.run(["umount", "-l", place], check=False, timeout=UP_S)

    def _start(self, *command: str) -> None:
        with (self._folder / "log").open("ab") as log:
            self._servers.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )
            )  # fmt: skip

    def _answers(self) -> bool:
        told = subprocess.run(
            ["docker", "-H", self.host, "info"], capture_output=True, timeout=UP_S
        )
        return told.returncode == 0

    def _ended(self) -> bool:
        """Kills what still runs of it: shims, and through them their containers."""
        wanted = str(self._folder).encode()
        found = False
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                pid = int(entry.parent.name)
                if pid != os.getpid() and wanted in entry.read_bytes():
                    send(pid, signal.SIGKILL)
                    found = True
        return not found


@contextmanager
def private_engine(image: str, *, live_restore: bool) -> Iterator[PrivateEngine]:
    """An engine that has an image."""
    folder = Path(tempfile.mkdtemp(prefix="ad-", dir="/tmp"))  # sockets' paths must be short
    engine = PrivateEngine(folder, live_restore=live_restore)
    try:
        engine.up()
        engine.load(image)
        yield engine
    finally:
        engine.end()
        shutil.rmtree(folder, ignore_errors=True)
