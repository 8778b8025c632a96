"""Machines joined to a Ray cluster, each with an engine of its own, and sweeps that run on them.

The cluster's head, the S3 server and the command that drives a sweep are this machine's. Nothing
goes between it and the others but what they say to each other over the network.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from scheduler.bench.count import Left
from scheduler.bench.processes import Found, end_all, marked, start, wait_for
from scheduler.bench.servers import BucketServer
from scheduler.bench.world import World
from scheduler.ray_client import OBJECT_STORE_BYTES
from scheduler.settings import Settings
from tests.base_image import base_image
from tests.cluster.machine import UP_S, Machine, Machines, network
from tests.layout.tree import ROOT

TOKEN = "/tmp/token"
WORKSPACE = "/tmp/w"
RESOURCE = '{"apiary_node": 1}'
PORT = 6379
SLOW = "scripted-slow"
"""A condition whose trials take some ten seconds and hardly any of the processor's time."""


class Head:
    """The cluster's control service, on this machine, where no trial runs."""

    def __init__(
        self,
        folder: Path,
        address: str,
        environment: Mapping[str, str],
        mark: str,
        machines: Machines,
    ) -> None:
        """Starts nothing yet."""
        self._folder = folder
        self._ip = address
        self._environment = environment
        self._mark = mark
        self._machines = machines
        self.address = f"{address}:{PORT}"

    def up(self) -> None:
        """Starts it, and waits until it answers."""
        words = (
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--num-cpus", "0",
            "--node-ip-address", self._ip, "--port", str(PORT), "--temp-dir", str(self._folder),
            "--include-dashboard", "false", "--object-store-memory", str(OBJECT_STORE_BYTES),
        )  # fmt: skip
        self._folder.mkdir(exist_ok=True)
        log = self._folder / "log"
        started = start(words, self._environment, self._mark, self._folder, log)
        wait_for(f"Ray's head (see {log})", lambda: started.poll() is not None, UP_S)
        assert started.returncode == 0, log.read_text()

    def down(self) -> list[Found]:
        """Ends it."""
        return end_all(self._mark, self._folder)

    def actors(self) -> list[Found]:
        """The processes of node actors, on all machines."""
        return [
            Found(pid, each.name) for each in self._machines.all.values() for pid in each.actors()
        ]


class ClusterWorld(World):
    """A world whose nodes are machines; ``cluster_world`` makes and ends one."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        address: str,
        machines: Machines,
        variables: Mapping[str, str],
    ) -> None:
        super().__init__(folder, ROOT / "manifests", settings)
        self._machines = machines
        self._variables = dict(variables)
        servers = {**self._environment, **self._clustered, **variables}
        self.bucket = BucketServer(
            folder / "s3", self._environment, f"{self._mark}-bucket", host=address
        )
        self.head = Head(folder / "h", address, servers, f"{self._mark}-ray", machines)
        self.ray = self.head  # type: ignore[assignment]
        _write_slow(folder / "home" / f"{SLOW}.yaml")
        (folder / "home" / "endpoints.json").write_text(f'{{"{SLOW}": {{"provider": "scripted"}}}}')

    @property
    def machines(self) -> Mapping[str, Machine]:
        """By name, those that are off too."""
        return self._machines.all

    def start(self, *names: str) -> list[Machine]:
        """Machines with an engine that has the base image; they are of no cluster yet."""
        made = [self._machines.start(name, self._of_machine()) for name in names]
        self.each(made, Machine.engine_up)
        self.each(made, lambda machine: machine.load(base_image()))
        return made

    def join(self, machine: Machine) -> None:
        """A machine joins the cluster."""
        token = machine.folder(TOKEN)
        shutil.copy(self.folder / "token", token)
        machine.join(
            self.head.address, "--num-cpus", "0", "--resources", RESOURCE,
            "--object-store-memory", str(OBJECT_STORE_BYTES),
        )  # fmt: skip

    def each(self, machines: Sequence[Machine], act: Any) -> None:
        """Does something on several machines at once."""
        with ThreadPoolExecutor(len(machines)) as pool:
            list(pool.map(act, machines))

    def sweep_file(self, name: str, attempts: int, **limits: Any) -> Path:
        """A sweep of slow trials."""
        file = super().sweep_file(name, attempts, **limits)
        document = yaml.safe_load(file.read_text())
        document["conditions"] = [str(file.parent / f"{SLOW}.yaml")]
        document["endpoints"] = str(file.parent / "endpoints.json")
        file.write_text(yaml.safe_dump(document))
        return file

    def containers(self, sweep: str, *, running: bool = False) -> list[Any]:
        """The containers of a sweep on all machines; each says which in ``Machine``."""
        return [
            {**each, "Machine": machine.name}
            for machine in self._on()
            for each in machine.api.listing("containers", [f"apiary.sweep={sweep}"], UP_S)
            if each["State"] == "running" or not running
        ]

    def on(self, sweep: str, machine: str) -> int:
        """How many containers of a sweep's trials run on a machine."""
        return sum(
            each["Machine"] == machine and "apiary.attempt" in each["Labels"]
            for each in self.containers(sweep, running=True)
        )

    def left(self, sweep: str, *, of_cluster: bool = True) -> Left:
        """What is left of a sweep on all machines that are on."""
        found: dict[str, list[str]] = {kind: [] for kind in Left().kinds()}
        for machine in self._on():
            for kind in ("containers", "volumes", "networks"):
                for each in machine.api.listing(kind, [f"apiary.sweep={sweep}"], UP_S):
                    found[kind].append(f"{machine.name} {each.get('Id') or each['Name']}")
            found["processes"] += [f"{machine.name} {pid}" for pid in machine.actors()]
            trials = machine.folder(f"{WORKSPACE}/trials")
            found["folders"] += [str(each.parent) for each in trials.glob("*/owner")]
        found["processes"] += [
            f"{each.pid} {each.title[:60]}" for each in marked(f"{self._mark}-command")
        ]
        return Left(**{kind: tuple(each) for kind, each in found.items()})

    def _remove(self, sweep: str) -> None:
        """Containers go with their machines."""

    def _on(self) -> list[Machine]:
        return [each for each in self._machines.all.values() if each.is_on]

    def _of_machine(self) -> dict[str, str]:
        kept = ("PATH", "LANG", "PYTHONPATH", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        own = {name: value for name, value in self._environment.items() if name in kept}
        return {
            **own,
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": "/tmp",
            "APIARY_WORKSPACE": WORKSPACE,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            **self._variables,
        }


def _write_slow(path: Path) -> None:
    """A condition like the shipped one, of a model that takes its time."""
    shipped = (ROOT / "manifests" / "conditions" / "scripted-solver.yaml").read_text()
    path.write_text(shipped.replace("scripted-solver", SLOW))


@contextmanager
def cluster_world(variables: Mapping[str, str]) -> Iterator[ClusterWorld]:
    """A world with an S3 server and a cluster's head, and no machine yet.

    Args:
        variables: of Ray's servers and of the machines, beside those that they need.
    """
    environment = {"PATH": os.environ["PATH"], "APIARY_BASE_IMAGE": base_image()}
    settings = Settings(environment=environment, state=ROOT / ".apiary")
    folder = Path(tempfile.mkdtemp(prefix="am-", dir="/tmp"))  # sockets' paths must be short
    with ExitStack() as owned:
        owned.callback(shutil.rmtree, folder, ignore_errors=True)
        net = owned.enter_context(network())
        machines = Machines(net, folder / "m")
        owned.callback(machines.off)
        made = ClusterWorld(folder, settings, net.address, machines, variables)
        owned.callback(made.close)
        made.bucket.up()
        made.head.up()
        yield made
