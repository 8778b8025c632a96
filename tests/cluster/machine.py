"""A machine of the cluster, as far as one kernel can give several: all namespaces are its own.

It has a name and an address, processes that see nobody else's, a /tmp and a /run that nobody else
sees, and a Docker engine that was started as on any machine. A cable leads to a bridge and can be
pulled out. Whatever ends the tests ends it: with its first process the kernel takes away all
others, their mounts and their end of the cable.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scheduler.bench.command import PACKAGES
from scheduler.bench.processes import END_S, send, wait_for
from tests.cluster.init import UP
from workers.container.api import DockerApi

UP_S = 120.0
"""For each step, on a machine that has other work."""
CALL_S = 60.0
SOCKET = "run/docker.sock"
CONTROLLERS = Path("/sys/fs/cgroup")


class Network:
    """A bridge with an address of this machine's; ``network`` makes and removes it."""

    def __init__(self, name: str, prefix: str) -> None:
        self.name = name
        self._prefix = prefix
        self._cables = 0
        # Where bridges are filtered, Docker's policy drops what two machines say to each other.
        self._rule = ("FORWARD", "-i", name, "-o", name, "-j", "ACCEPT")

    @property
    def address(self) -> str:
        """Of this machine."""
        return f"{self._prefix}.1"

    def up(self) -> None:
        """Makes it."""
        _call("ip", "link", "add", self.name, "type", "bridge")
        _call("ip", "addr", "add", f"{self.address}/24", "dev", self.name)
        _call("ip", "link", "set", self.name, "up")
        _call("iptables", "-w", "5", "-I", *self._rule)

    def plug(self, pid: int) -> tuple[str, str]:
        """Leads a cable to the machine of a process; gives its end here, and the address there."""
        self._cables += 1
        here, address = f"{self.name}v{self._cables}", f"{self._prefix}.{10 + self._cables}"
        _call("ip", "link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _call("ip", "link", "set", here, "master", self.name, "up")
        for words in (
            ("addr", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "lo", "up"),
            ("link", "set", "eth0", "up"),
            ("route", "add", "default", "via", self.address),
        ):
            _call("nsenter", "-t", str(pid), "-n", "ip", *words)
        return here, address

    def down(self) -> None:
        """Removes it; no error where a part of it was never made."""
        for words in (
            ("iptables", "-w", "5", "-D", *self._rule),
            ("ip", "link", "del", self.name),
        ):
            subprocess.run(words, check=False, capture_output=True, timeout=CALL_S)


@contextmanager
def network() -> Iterator[Network]:
    """A network that nobody else has."""
    used = _call("ip", "-4", "route").stdout.decode()
    prefix = next(
        each
        for each in (
            f"10.{64 + secrets.randbelow(128)}.{secrets.randbelow(256)}" for _ in range(99)
        )
        if f"{each}." not in used
    )
    made = Network(f"apm{secrets.token_hex(3)}", prefix)
    try:
        made.up()
        yield made
    finally:
        made.down()


class Machine:
    """See the module. It is started by its maker, and ``off`` must follow."""

    def __init__(
        self, name: str, network: Network, disk: Path, variables: Mapping[str, str]
    ) -> None:
        """Starts it: it has a network and nothing else.

        Args:
            name: of the host.
            network: that its cable leads to.
            disk: a folder for what it keeps.
            variables: of every program that is started there.
        """
        self.name = name
        self._disk = disk
        self._variables = dict(variables)
        self.is_on = True
        self._servers: list[subprocess.Popen[bytes]] = []
        self._ray: subprocess.Popen[bytes] | None = None
        self._api: DockerApi | None = None
        for folder in ("tmp", "docker"):
            (disk / folder).mkdir(parents=True)
        # Its life hangs on this thread's: it cannot outlive the tests.
        self._first = self._popen(
            "setpriv", "--pdeathsig", "KILL",
            "unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child",
            sys.executable, "-m", "tests.cluster.init", name, str(disk),
            environment={**os.environ, "PYTHONPATH": str(PACKAGES)},
        )  # fmt: skip
        wait_for(f"machine {name} (see {disk / 'log'})", (disk / "tmp" / UP).exists, UP_S)
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children")
        self.pid = int(children.read_text())
        """Its first process, as this machine numbers it."""
        self._space = os.readlink(f"/proc/{self.pid}/ns/pid")
        self._cable, self.address = network.plug(self.pid)

    # Docker

    def engine_up(self) -> None:
        """Starts its Docker engine, and waits until it answers."""
        self._servers.append(
            self._popen(*self._inside("dockerd", "--cgroup-parent", f"/{self._group}"))
        )
        wait_for(f"dockerd of {self.name} (see {self._disk / 'log'})", self._answers, UP_S)

    def load(self, image: str) -> None:
        """Copies an image from this machine's engine."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(
                ["docker", "-H", self.engine, "load"], stdin=saved.stdout, check=True,
                capture_output=True, timeout=UP_S,
            )  # fmt: skip
        assert saved.returncode == 0

    @property
    def engine(self) -> str:
        """Its engine for a program of this machine, as ``DOCKER_HOST`` names one."""
        return f"unix:///proc/{self.pid}/root/{SOCKET}"

    @property
    def api(self) -> DockerApi:
        """Its engine."""
        if self._api is None:
            before = os.environ.get("DOCKER_HOST")
            os.environ["DOCKER_HOST"] = self.engine
            try:
                self._api = DockerApi()
            finally:
                del os.environ["DOCKER_HOST"]
                if before is not None:
                    os.environ["DOCKER_HOST"] = before
        return self._api

    # Ray

    def join(self, head: str, *options: str) -> None:
        """Joins a cluster, and joins it again whenever Ray ends here, as a service manager does."""
        words = (
            sys.executable, "-m", "ray.scripts.scripts", "start", "--block",
            "--address", head, "--node-ip-address", self.address,
            "--temp-dir", "/tmp/r", "--include-log-monitor", "false", *options,
        )  # fmt: skip
        loop = 'while :; do "$@"; echo "ray ended with $?"; sleep 1; done'
        self._ray = self._popen(*self._inside("bash", "-c", loop, "ray", *words))

    def leave(self) -> None:
        """Ends Ray here, and does not start it again; nobody is told."""
        if self._ray is not None:
            self._ray.kill()
            self._ray.wait(END_S)
            self._ray = None
        for pid, title in self.processes():
            if title.partition(" ")[0].endswith("/raylet") or title.startswith("ray::"):
                send(pid, signal.SIGTERM)
        wait_for(f"Ray's end on {self.name}", lambda: not self._of_ray(), UP_S)

    def actors(self) -> list[int]:
        """The processes of node actors."""
        return [pid for pid, title in self.processes() if title.startswith("ray::NodeActor")]

    def raylets(self) -> list[int]:
        """The processes of Ray's node manager."""
        return [pid for pid, title in self.processes() if title.split(" ")[0].endswith("/raylet")]

    # The cable

    def cut(self) -> None:
        """Pulls the cable."""
        _call("ip", "link", "set", self._cable, "down")

    def heal(self) -> None:
        """Plugs it in again."""
        _call("ip", "link", "set", self._cable, "up")

    # What runs

    def run(self, *words: str, within_s: float = UP_S) -> subprocess.CompletedProcess[bytes]:
        """Runs a program there to its end, whatever that is."""
        return subprocess.run(
            self._inside(*words), capture_output=True, timeout=within_s, env=self._variables
        )

    def processes(self) -> list[tuple[int, str]]:
        """What runs there, containers included, but for its first process: pid here, and title."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(entry / "ns" / "pid") == self._space and int(entry.name) != self.pid:
                    title = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append((int(entry.name), title.decode(errors="replace").strip()))
        return [each for each in found if each[1]]

    def folder(self, place: str) -> Path:
        """A folder of the machine's, seen from here."""
        return Path(f"/proc/{self.pid}/root{place}")

    def slow(self, cores: float) -> None:
        """Its containers get so much of the processor together."""
        group = CONTROLLERS / "cpu" / self._group
        group.mkdir(exist_ok=True)
        (group / "cpu.cfs_quota_us").write_text(str(int(cores * 100_000)))

    def off(self) -> None:
        """The power is cut: nothing of it is left but its disk."""
        self.is_on = False
        if self._api is not None:
            self._api.close()
        send(self.pid, signal.SIGKILL)
        for server in (*self._servers, *([self._ray] if self._ray else ()), self._first):
            server.kill()
            server.wait(END_S)
        wait_for(f"the end of {self.name}", lambda: not self.processes(), UP_S)
        for group in CONTROLLERS.glob(f"*/{self._group}"):
            for folder in (*sorted(group.rglob("*/"), reverse=True), group):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    @property
    def _group(self) -> str:
        """Its containers' control group."""
        return f"{self._disk.parent.name}-{self.name}"

    def _inside(self, *words: str) -> Sequence[str]:
        return ("nsenter", "-t", str(self.pid), "-a", *words)

    def _popen(
        self, *words: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self._disk / "log").open("ab") as log:
            return subprocess.Popen(
                words,
                cwd="/",
                env=dict(environment or self._variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        told = subprocess.run(
            ["docker", "-H", self.engine, "info"], capture_output=True, timeout=UP_S
        )
        return told.returncode == 0

    def _of_ray(self) -> list[Any]:
        return [each for each in self.processes() if "/ray/" in each[1] or "ray::" in each[1]]


def _call(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, check=True, capture_output=True, timeout=CALL_S)


class Machines:
    """Of one network."""

    def __init__(self, network: Network, folder: Path) -> None:
        self._network = network
        self._folder = folder
        self.all: dict[str, Machine] = {}

    def start(self, name: str, variables: Mapping[str, str]) -> Machine:
        """One more; by the main thread."""
        made = self.all[name] = Machine(name, self._network, self._folder / name, variables)
        return made

    def off(self) -> None:
        """All of them."""
        with ThreadPoolExecutor(len(self.all) or 1) as pool:
            list(pool.map(Machine.off, self.all.values()))
        shutil.rmtree(self._folder, ignore_errors=True)
