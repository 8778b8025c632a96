"""Facts about this node's container engine, for a doctor. Nothing here decides."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.container.calls import Deadline
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
    return EngineFacts(
        version=str(info["ServerVersion"]),
        api_version=engine.api.version,
        kernel=str(info["KernelVersion"]),
        same_kernel=await _same_kernel(engine, image) if image else None,
        cgroup_version=str(info.get("CgroupVersion", "1")),
        storage_driver=str(info["Driver"]),
        has_quota=has_quota(info, await asyncio.to_thread(_mounts)),
        has_buildkit=await engine.has_buildkit(),
        door_problem=await _door_problem(engine, image) if image else None,
        fence_problem=await engine.calls.run(deadline, fence_problem),
        root=root,
        free_bytes=await asyncio.to_thread(_free_bytes, root),
    )


def has_quota(info: Any, mounts: str) -> bool:
    """Whether ``storage-opt size`` works, by Docker's rules for its storage drivers.

    Args:
        info: the engine's facts.
        mounts: this host's mountinfo (proc(5)).
    """
    if info["Driver"] in ("btrfs", "zfs", "devicemapper", "windowsfilter"):
        return True
    if info["Driver"] != "overlay2":
        return False
    backing = dict(tuple(row) for row in info["DriverStatus"] if len(row) == 2)
    if backing.get("Backing Filesystem") != "xfs":
        return False
    options = mount_options(mounts, Path(info["DockerRootDir"]))
    return bool({"prjquota", "pquota"} & set(options.split(",")))


def mount_options(mounts: str, path: Path) -> str:
    """The file system's options of the mount that holds a path, by the longest mount point."""
    best, options = Path("/"), ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split()[4])
        if path.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, options = point, after.split()[2]
    return options


async def _same_kernel(engine: DockerEngine, image: str) -> bool:
    """Whether a container sees the boot id that this process sees."""
    spec = ContainerSpec(image=image, command=["cat", _BOOT_ID], labels={})
    _, output = await engine.run_once(spec, _TIMEOUT_S)
    return output.strip() == (await asyncio.to_thread(Path(_BOOT_ID).read_text)).strip()


async def _door_problem(engine: DockerEngine, image: str) -> str:
    """Why no socket can be opened inside a container; empty if one could."""
    spec = ContainerSpec(image=image, command=["sleep", str(int(_TIMEOUT_S))], labels={})
    container = await engine.start(spec, _TIMEOUT_S)
    try:
        container.listen(_DOOR_PORT).close()
    except ContainerError as error:
        return str(error)
    finally:
        await container.remove(_TIMEOUT_S)
    return ""


def _mounts() -> str:
    """This process's mount table."""
    return Path("/proc/self/mountinfo").read_text()


def _free_bytes(root: Path) -> int | None:
    """Free space of the file system under a directory."""
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return None
