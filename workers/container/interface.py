"""What a trial needs of a container engine, and the errors of one.

No call waits on a container: ``ended`` is fed by the engine's event stream.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol


class ContainerError(Exception):
    """The engine refused or failed; the message says what was attempted and on what."""


class ImageBuildError(ContainerError):
    """An image could not be built; the message ends with the builder's last lines."""


class ContainerTimeoutError(ContainerError):
    """A container that should have ended by now was killed by us."""


class ContainerLostError(ContainerError):
    """A container that should run is gone, for no reason of ours."""


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
    cpus: int = 1
    memory_mb: int = 1024
    pids: int = 512
    harden: bool = True
    """``no-new-privileges`` and all capabilities dropped."""


@dataclass(frozen=True)
class ExitState:
    """How a container ended."""

    exit_code: int
    oom_killed: bool
    """Docker's flag: sticky for any child, so evidence and not a cause."""


class Container(Protocol):
    """A started container."""

    id: str

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

    async def output(self, timeout_s: float) -> str:
        """The end of what it wrote to standard output and standard error, 8 KiB at most."""
        ...

    def oom_events(self) -> int:
        """The memory cgroup's OOM kills so far; the last known figure once it is gone."""
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

    async def copy_out(self, image: str, path: str, target: Path, max_bytes: int) -> None:
        """Copies one regular file of an image, by way of a container that never runs.

        Raises:
            ContainerError: it is missing, no regular file, or larger than ``max_bytes``.
        """
        ...

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        """Starts, waits, removes; gives the exit state and the end of its output (8 KiB).

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
