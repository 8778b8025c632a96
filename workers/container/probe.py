"""Facts about this node's container engine, for a doctor. Nothing here decides."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from workers.container.calls import Deadline
from workers.container.disk import free_bytes, has_quota, mount_table
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError, ContainerSpec
from workers.container.network import fence_problem

_TIMEOUT_S = 60.0
_DOOR_PORT = 3600
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class EngineFacts:
    """What was found. A ``…_problem`` is empty if there is none, None if it was not tried."""

    version: str
    api_version: str
    kernel: str
    same_kernel: bool | None
    """Whether containers run on this very boot of this kernel; None without an image to try."""
    cgroup_version: str
    storage_driver: str
    has_quota: bool
    """Whether the engine can limit a container's disk space."""
    has_buildkit: bool
    door_problem: str | None
    """Why no socket can be opened inside a container."""
    freezer_problem: str | None
    """Why not everything in a container can be killed at once."""
    fence_problem: str
    """Why the rules of the public network cannot be set."""
    root: Path
    """Where the engine keeps images and containers."""
    free_bytes: int | None
    """Free space there; None if it cannot be seen from here."""


async def probe(engine: DockerEngine, image: str | None = None) -> EngineFacts:
    """Asks the engine, and tries what only a trial shows.

    Args:
        engine: an open engine; that it could be opened says that it is reachable.
        image: an image with ``cat`` and ``sleep`` to try kernel and door with.

    Raises:
        ContainerError: the engine did not answer.
    """
    deadline = Deadline("ask the Docker engine for its facts", _TIMEOUT_S)
    info = await engine.calls.run(deadline, lambda d: engine.api.info(d.left_s()))
    root = Path(info["DockerRootDir"])
    door_problem, freezer_problem = await _door_problems(engine, image) if image else (None, None)
    return EngineFacts(
        version=str(info["ServerVersion"]),
        api_version=engine.api.version,
        kernel=str(info["KernelVersion"]),
        same_kernel=await _same_kernel(engine, image) if image else None,
        cgroup_version=str(info.get("CgroupVersion", "1")),
        storage_driver=str(info["Driver"]),
        has_quota=has_quota(info, await asyncio.to_thread(mount_table)),
        has_buildkit=await engine.has_buildkit(),
        door_problem=door_problem,
        freezer_problem=freezer_problem,
        fence_problem=await engine.calls.run(deadline, fence_problem),
        root=root,
        free_bytes=await asyncio.to_thread(free_bytes, root),
    )


async def _same_kernel(engine: DockerEngine, image: str) -> bool:
    """Whether a container sees the boot id that this process sees."""
    spec = ContainerSpec(image=image, command=["cat", _BOOT_ID], labels={})
    _, output = await engine.run_once(spec, _TIMEOUT_S)
    return output.strip() == (await asyncio.to_thread(Path(_BOOT_ID).read_text)).strip()


async def _door_problems(engine: DockerEngine, image: str) -> tuple[str, str]:
    """Why the two privileged acts cannot be done; empty if they could."""
    spec = ContainerSpec(image=image, command=["sleep", str(int(_TIMEOUT_S))], labels={})
    container = await engine.start(spec, _TIMEOUT_S)
    door_problem = freezer_problem = ""
    try:
        try:
            container.listen(_DOOR_PORT).close()
        except ContainerError as error:
            door_problem = str(error)
        try:
            await container.kill_all(_TIMEOUT_S)
        except ContainerError as error:
            freezer_problem = str(error)
    finally:
        await container.remove(_TIMEOUT_S)
    return door_problem, freezer_problem
