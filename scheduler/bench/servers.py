"""The servers of a bench, each a process that can be killed and started again."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from scheduler.bench import bucket
from scheduler.bench.processes import END_S, Found, end_all, marked, send, start, wait_for

UP_S = 120.0
"""For a server to answer, on a machine that has other work."""


class BucketServer:
    """The S3 server."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], mark: str, host: str = "127.0.0.1"
    ) -> None:
        """Starts nothing yet; ``host`` is the address that it listens on."""
        folder.mkdir()
        self.folder = folder
        self._environment = environment
        self._mark = mark
        self._host = host
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def objects(self) -> Path:
        """Where its objects lie, as files that begin with a line of their own."""
        return self.folder / bucket.OBJECTS

    @property
    def url(self) -> str:
        """Of a store in it."""
        options = {
            "endpoint_url": f"http://{self._host}:{self._port()}",
            "path_style": "true",
            "region": "us-east-1",
        }
        return f"s3://results/bench?{urlencode(options)}"

    def up(self) -> None:
        """Starts it, unless it runs; waits until it answers.

        Raises:
            BenchError: it does not.
        """
        if self._process is not None and self._process.poll() is None:
            return
        command = [sys.executable, "-m", bucket.__name__, str(self.folder), self._host]
        self._process = start(
            command, self._environment, self._mark, self.folder, self.folder / "log"
        )
        wait_for(f"the S3 server (see {self.folder / 'log'})", self._answers, UP_S)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(END_S)
            self._process = None

    def freeze(self) -> None:
        """It takes connections and answers nothing, until it is thawed."""
        if self._process is not None:
            send(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        if self._process is not None:
            send(self._process.pid, signal.SIGCONT)

    def refuse(self, *rules: str) -> None:
        """Requests that match are answered with 503: ``METHOD key`` as regular expressions."""
        (self.folder / bucket.REFUSED).write_text("".join(f"{rule}\n" for rule in rules))

    def allow(self) -> None:
        """Nothing is refused any more."""
        (self.folder / bucket.REFUSED).unlink(missing_ok=True)

    def results_written(self) -> list[str]:
        """The key of every write of a result that was accepted, in their order."""
        place = self.folder / bucket.RESULTS
        return place.read_text().splitlines() if place.exists() else []

    def listings(self) -> int:
        """How many listings were asked for."""
        place = self.folder / bucket.LISTINGS
        return len(place.read_text().splitlines()) if place.exists() else 0

    def _port(self) -> int:
        return int((self.folder / bucket.PORT).read_text())

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection((self._host, self._port()), 1.0).close()
            return True
        return False


class RayNodes:
    """Ray's servers, on one machine as many nodes."""

    def __init__(self, folder: Path, environment: Mapping[str, str], mark: str) -> None:
        """Starts nothing yet.

        Args:
            folder: for what Ray keeps; its path is short, since sockets are below it.
            environment: of the servers and of the node actors.
            mark: by which all of it is found.
        """
        folder.mkdir()
        self.folder = folder
        self._environment = environment
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None
        self._added = 0
        self._started = 0

    @property
    def address(self) -> str:
        """Of the cluster."""
        return self._place.read_text()

    @property
    def _place(self) -> Path:
        return self.folder / f"address{self._started}"

    def up(self, nodes: int) -> None:
        """Starts a cluster, with nothing left of the one before.

        Raises:
            BenchError: it does not come.
        """
        self.down()
        self._started += 1
        self._added = 0
        command = [sys.executable, "-m", "scheduler.bench.ray_nodes", str(nodes), str(self._place)]
        log = self.folder / "log"
        self._process = start(
            command, self._environment, self._mark, self.folder, log, steered=True
        )
        wait_for(f"Ray's servers (see {log})", self._place.exists, UP_S)

    def add(self) -> None:
        """One more node.

        Raises:
            BenchError: it does not come.
        """
        if self._process is None or self._process.stdin is None:
            return
        self._added += 1
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        place = self._place.with_suffix(f".{self._added}")
        wait_for(f"another Ray node (see {self.folder / 'log'})", place.exists, UP_S)

    def down(self) -> list[Found]:
        """Ends all of it.

        Returns:
            What would not go.
        """
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        left = end_all(self._mark, self.folder)
        if self._process is not None:
            self._process.wait(END_S)
            self._process = None
        return left

    def kill(self, pid: int) -> None:
        """SIGKILL to a process of Ray's."""
        send(pid, signal.SIGKILL)

    def freeze(self, pid: int) -> None:
        """SIGSTOP."""
        send(pid, signal.SIGSTOP)

    def thaw(self, pid: int) -> None:
        """SIGCONT."""
        send(pid, signal.SIGCONT)

    def actors(self) -> list[Found]:
        """The processes of node actors."""
        return [each for each in self._processes() if each.title.startswith("ray::NodeActor")]

    def raylets(self) -> list[Found]:
        """Ray's node managers; the head's is the first."""
        found = [each for each in self._processes() if _program(each) == "raylet"]
        return sorted(found, key=lambda each: each.pid)

    def raylet_of(self, actor: int) -> int:
        """The node manager that started a node actor."""
        stat = Path(f"/proc/{actor}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[1])

    def head(self) -> Found:
        """Ray's control service."""
        return next(each for each in self._processes() if _program(each) == "gcs_server")

    def _processes(self) -> list[Found]:
        return marked(self._mark, self.folder)


def _program(process: Found) -> str:
    return process.title.partition(" ")[0].rpartition("/")[2]
