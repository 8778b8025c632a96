"""A world of real parts for sweeps to be hurt in: an S3 server, Ray nodes, Docker, commands.

Everything is in one folder and bears one mark, so that all of it can be ended and what is left
can be counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scheduler.bench.command import Command
from scheduler.bench.count import PREFIX, Left, Tally, read_tally
from scheduler.bench.processes import BenchError, Found, end_all, marked, send
from scheduler.bench.servers import BucketServer, RayNodes
from scheduler.bench.surroundings import base_image, bench_environment, bucket_credentials
from scheduler.settings import Settings
from workers.container.api import DockerApi, Kind, MissingError
from workers.container.interface import ContainerError
from workers.container.scratch import OWNER_FILE, TRIALS

TASKS = ("user-mention", "read-named-path-outside-workspace")
"""Short ones: about 2 s a trial on an idle machine."""

LIMITS: Mapping[str, Any] = {
    "lease_term_s": 15.0,
    "teardown_s": 10.0,
    "seal_s": 45.0,
    "max_tries": 20,
    "poison": 1000,
    "node_breaker": 1000,
    "reap_every_s": 5.0,
    "orphan_s": 120.0,
}
"""Short terms, and so many tries that no accident spends them: each is to end in a verdict."""

DOCKER_S = 60.0
SHARED = f"apiary-{os.geteuid()}"
"""The folder of this user's locks, which stays."""


class World:
    """See the module; ``world`` makes and ends one."""

    def __init__(self, folder: Path, manifests: Path, settings: Settings) -> None:
        """Starts nothing yet.

        Args:
            folder: empty, with a short path.
            manifests: the folder of tasks and conditions.
            settings: of the command that runs the bench.
        """
        self.folder = folder
        self._manifests = manifests.absolute()
        self._mark = secrets.token_hex(8)
        self._made = 0
        self.sweeps: list[str] = []
        self.commands: list[Command] = []
        self.api = DockerApi()
        self._environment = {
            **bench_environment(folder, settings),
            **bucket_credentials(),
        }
        # A command looks for the verifier kit above its sweep file, and in its working directory.
        (folder / "home" / "manifests").symlink_to(self._manifests)
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        self._clustered = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
        }
        servers = {**self._environment, **self._clustered, "RAY_TMPDIR": str(folder / "r")}
        self.bucket = BucketServer(folder / "b", self._environment, f"{self._mark}-bucket")
        self.ray = RayNodes(folder / "r", servers, f"{self._mark}-ray")

    # Sweeps

    def sweep_file(self, name: str, attempts: int, **limits: Any) -> Path:
        """Writes a sweep file: ``attempts`` of each of two short tasks, by a scripted model."""
        document = {
            "name": name,
            "tasks": {"path": str(self._manifests / "tasks"), "include": list(TASKS)},
            "attempts": attempts,
            "conditions": [str(self._manifests / "conditions" / "scripted-solver.yaml")],
            "endpoints": str(self._manifests.parent / "deploy" / "endpoints" / "scripted.json"),
            "network": "sealed",
            "limits": {**LIMITS, **limits},
        }
        path = self.folder / "home" / f"{name}.yaml"
        path.write_text(json.dumps(document))
        return path

    def command(self, *arguments: str, cluster: bool, variables: Mapping[str, str]) -> Command:
        """Starts ``apiary …`` on the store, on the cluster or with a Ray of its own."""
        self._made += 1
        environment = {**self._environment, **(self._clustered if cluster else {}), **variables}
        address = ("--ray-address", self.ray.address) if cluster else ()
        started = Command(
            (*arguments, *address, "--store", self.bucket.url),
            environment,
            f"{self._mark}-command",
            self.folder / "home" / f"command-{self._made}",
        )
        self.commands.append(started)
        return started

    # What is there

    def containers(self, sweep: str, *, running: bool = False) -> list[Any]:
        """The containers of a sweep, as the engine lists them."""
        found = self.api.listing("containers", [f"apiary.sweep={sweep}"], DOCKER_S)
        return [each for each in found if each["State"] == "running" or not running]

    def committed(self, sweep: str) -> set[str]:
        """The attempts that have a result."""
        return {path.parent.name for path in self.results(sweep)}

    def results(self, sweep: str) -> list[Path]:
        """The results as they lie on the S3 server's disk."""
        folder = self.bucket.objects / PREFIX / "sweeps" / sweep / "attempts"
        return list(folder.glob("*/*/result.json"))

    def tally(self, sweep: str, commands: list[Command]) -> Tally:
        """What became of a sweep, from the store and from what its commands told."""
        return read_tally(self.bucket, sweep, commands)

    def left(self, sweep: str, *, of_cluster: bool = True) -> Left:
        """What is left of a sweep whose commands have ended.

        Args:
            sweep: its id.
            of_cluster: whether node actors are not to be there any more.
        """
        kinds: tuple[Kind, ...] = ("containers", "volumes", "networks")
        engine = {
            kind: [
                str(each.get("Id") or each["Name"])[:64]
                for each in self.api.listing(kind, [f"apiary.sweep={sweep}"], DOCKER_S)
            ]
            for kind in kinds
        }
        pids = {each.pid for each in self.commands}
        processes = marked(f"{self._mark}-command")
        if of_cluster:
            processes += self.ray.actors()
        trials = [
            *(self.folder / "w" / TRIALS).glob("*"),
            *(self.folder / "home" / ".apiary" / "node" / TRIALS).glob("*"),
        ]
        places = [
            *(path for path in (self.folder / "t").glob("*") if path.name != SHARED),
            # One without an owner is kept on purpose: the only copy of what no store would take.
            *(path for path in trials if (path / OWNER_FILE).exists()),
            *(
                path
                for pid in pids
                for path in Path(tempfile.gettempdir()).glob(f"apiary-ray-{pid}-*")
            ),
        ]
        return Left(
            containers=tuple(engine["containers"]),
            volumes=tuple(engine["volumes"]),
            networks=tuple(engine["networks"]),
            processes=tuple(f"{each.pid} {each.title[:60]}" for each in processes),
            folders=tuple(str(path) for path in places),
        )

    def kill_server(self, program: str) -> None:
        """SIGKILL to a server of every Ray that a command has started for itself."""
        for each in marked(f"{self._mark}-command"):
            if each.title.partition(" ")[0].endswith(f"/{program}"):
                send(each.pid, signal.SIGKILL)

    # The end

    def close(self) -> list[Found]:
        """Ends all processes and removes what sweeps have left in Docker.

        Returns:
            Processes that would not go.
        """
        left = end_all(f"{self._mark}-command")
        left += self.ray.down()
        self.bucket.kill()
        left += end_all(f"{self._mark}-bucket")
        for each in self.commands:
            each.kill()
        for sweep in self.sweeps:
            self._remove(sweep)
        self.api.close()
        return left

    def _remove(self, sweep: str) -> None:
        for container in self.containers(sweep):
            with contextlib.suppress(MissingError):
                self.api.remove(container["Id"], DOCKER_S)


@contextmanager
def world(manifests: Path, settings: Settings) -> Iterator[World]:
    """A world with an S3 server, ended and removed when it is left.

    Raises:
        BenchError: there is no Docker engine or no base image, or a server does not come.
    """
    base_image(settings)
    folder = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))  # sockets' paths must be short
    try:
        made = World(folder, manifests, settings)
    except ContainerError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise BenchError(str(error)) from error
    try:
        made.bucket.up()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
