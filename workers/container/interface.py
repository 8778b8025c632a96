"""What a trial needs of a container engine, and the errors of one.

No call waits on a container: ``ended`` is fed by the engine's event stream.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol


class ContainerError(Exception):
    """The engine refused or failed; the message says what was attempted and on what."""


class NoEngineError(ContainerError):
    """No engine listens where one should."""


class ImageBuildError(ContainerError):
    """An image could not be built; the message ends with the builder's last lines."""


class DiskFullError(ContainerError):
    """The engine's disk has less room left than it must have."""


class ContainerTimeoutError(ContainerError):
    """A container that should have ended by now was killed by us."""


class ContainerLostError(ContainerError):
    """A container that should run is gone, for no reason of ours."""


class NoDoorError(ContainerError):
    """This process has not the privilege to act inside a container, nor a helper that has it."""


@dataclass(frozen=True)
class Mount:
    """A bind mount."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class ContainerSpec:
    """What to start."""

    image: str
    """Image id."""
    command: Sequence[str]
    labels: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """May hold the agent's keys: never logged, never in labels or arguments."""
    mounts: Sequence[Mount] = ()
    network: Literal["none", "public"] = "none"
    hosts_file: Path | None = None
    """Where its ``/etc/hosts`` is written, a file that is this container's alone. Without a network
    and with such a file the engine sets nothing up for it, and starts it in half the time."""
    loopback_names: Sequence[str] = ()
    """Host names that are its own loopback, beside ``localhost``."""
    cpus: int = 1
    memory_mb: int = 1024
    pids: int = 512
    storage_mb: int = 0
    """What it may write beside its mounts, where the engine can bound that; 0: no bound."""
    harden: bool = True
    """``no-new-privileges`` and all capabilities dropped."""
    workdir: str = ""
    """Where its commands begin; empty: as the image says."""


@dataclass(frozen=True)
class ExitState:
    """How a container ended."""

    exit_code: int
    oom_killed: bool
    """Docker's flag: sticky for any child, so evidence and not a cause."""
    signalled: bool = False
    """Somebody had told the engine to kill it."""


class Process(NamedTuple):
    """A process of a container."""

    pid: int
    """On the engine's host."""
    parent: int
    command: str
    """Its arguments, cut; told by the process, so it may lie."""


class Killed(NamedTuple):
    """What ``kill_all`` did."""

    killed: tuple[Process, ...]
    survivors: tuple[Process, ...]
    """Empty: only the container's first process is left, which is proved."""


class Container(Protocol):
    """A started container."""

    id: str
    layer: Path | None
    """Where the host sees what it writes beside its mounts; None: it does not, or need not,
    since the engine bounds it."""

    def listen(self, port: int) -> socket.socket:
        """A listening socket on 127.0.0.1 inside the container's network namespace."""
        ...

    async def ended(self, timeout_s: float) -> ExitState | None:
        """How it ended, or None if it still runs after ``timeout_s`` seconds."""
        ...

    async def kill(self, timeout_s: float) -> ExitState:
        """SIGKILL, and the proof that it does not run.

        Raises:
            ContainerError: it could not be proved within ``timeout_s`` seconds.
        """
        ...

    async def kill_all(self, timeout_s: float) -> Killed:
        """SIGKILL to every process but the first, and the proof from the list of processes.

        Raises:
            NoDoorError: it takes a privilege that is not here.
            ContainerError: it could not be done within ``timeout_s`` seconds.
        """
        ...

    async def restart(self, timeout_s: float) -> tuple[Process, ...]:
        """Kills it with the proof of ``kill``, starts it again, and gives what then runs.

        Its files stay, its loopback listeners and ``ended`` begin anew.

        Raises:
            ContainerError: it could not be done within ``timeout_s`` seconds.
        """
        ...

    async def signal(self, name: str, timeout_s: float) -> None:
        """Sends a signal to its first process.

        Raises:
            ContainerError: it does not run, or the engine did not answer.
        """
        ...

    async def processes(self, timeout_s: float) -> tuple[Process, ...]:
        """What runs in it, the first process included.

        Raises:
            ContainerError: it does not run, or the engine did not answer.
        """
        ...

    async def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str | None],
        timeout_s: float,
        user: str = "",
    ) -> int:
        """Runs one more command in it, as its image's user or another, and gives its exit code.

        Its variables are the container's, with these laid over them; None takes one away. What
        the command writes is lost: it redirects it. A command that is late is not ended by this:
        its container must be.

        Raises:
            ContainerTimeoutError: it did not end in time.
            ContainerLostError: the container ended first.
            ContainerError: it could not be started.
        """
        ...

    async def output(self, timeout_s: float) -> str:
        r"""What it wrote to standard output and standard error: its first 4 and last 8 KiB.

        Bytes that are no UTF-8 are shown as ``\xNN``. The engine itself keeps the last MiB or
        so: of more, the beginning is lost, and what is said to be left out is too little.
        """
        ...

    def oom_events(self) -> int:
        """The memory cgroup's OOM kills so far; the last known figure once it is gone."""
        ...

    def memory_limit_reached(self) -> bool | None:
        """Whether its own memory limit was ever reached; None where that was not seen in time.

        An OOM kill without it is the doing of a limit above the container, the node's or that
        of a control group around it.
        """
        ...

    async def remove(self, timeout_s: float) -> None:
        """Removes it by force with its anonymous volumes; gone already is no error."""
        ...


class Engine(Protocol):
    """A container engine on this kernel."""

    async def ensure_image(
        self,
        context: Path,
        *,
        tag: str,
        build_args: Mapping[str, str],
        labels: Mapping[str, str],
        timeout_s: float,
    ) -> str:
        """The id of the image ``tag``, built once per node from ``context/Dockerfile``.

        Raises:
            ImageBuildError: the build failed or took longer than ``timeout_s``.
        """
        ...

    async def ensure_pulled(self, reference: str, timeout_s: float) -> tuple[str, str | None]:
        """The id of the image that a reference names, pulled if there is none, and its digest.

        The digest is ``repository@digest``; None: the registry told none, or it was built here.

        Raises:
            ImageBuildError: there is no such image, or it did not come within ``timeout_s``.
        """
        ...

    async def copy_out(self, image: str, path: str, target: Path, max_bytes: int) -> None:
        """Copies one regular file of an image, by way of a container that never runs.

        Raises:
            ContainerError: it is missing, no regular file, or larger than ``max_bytes``.
        """
        ...

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        """Starts, waits, removes; gives the exit state and its output as ``output`` does.

        Raises:
            ContainerTimeoutError: it did not end in time; it was killed.
            ContainerError: it could not be started.
        """
        ...

    async def start(self, spec: ContainerSpec, timeout_s: float) -> Container:
        """Creates and starts a container; on any failure nothing of it is left."""
        ...

    async def close(self) -> None:
        """Ends the event stream and the threads; removes the network it made, if unused."""
        ...
