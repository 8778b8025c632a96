"""From a ``ContainerSpec`` to what the Docker engine is asked to create. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workers.container.interface import ContainerError, ContainerSpec, Mount

NETWORK = "apiary"
"""The node-wide bridge of containers with a public network."""

_NAME = re.compile(r"[^=\0]+")


LOG = {"Type": "local", "Config": {"max-size": "1m", "max-file": "1", "compress": "false"}}
"""One file of 1 MB at most. Not ``json-file``, which replaces bytes that are no UTF-8."""

CPU_SHARES = 256
"""A quarter of Docker's default: where cores are short, whatever else runs in the engine (and the
engine's own helpers inside a container of somebody else) comes first."""


def container_body(
    spec: ContainerSpec, labels: Mapping[str, str], *, has_quota: bool = False
) -> dict[str, Any]:
    """The body of ``POST /containers/create``.

    Args:
        spec: what to start.
        labels: all labels, the caller's and the engine's.
        has_quota: whether the engine can bound what a container writes.

    Raises:
        ContainerError: a limit, command, variable or mount that cannot be meant.
    """
    _check(spec)
    return {
        "Image": spec.image,
        # Given as entrypoint, the command replaces the image's entrypoint and command both.
        "Entrypoint": [spec.command[0]],
        "Cmd": list(spec.command[1:]),
        "Env": [f"{name}={value}" for name, value in spec.environment.items()],
        "Labels": dict(labels),
        "OpenStdin": False,
        "Tty": False,
        # A health check of the image would run processes beside the agent.
        "Healthcheck": {"Test": ["NONE"]},
        **({"WorkingDir": spec.workdir} if spec.workdir else {}),
        "HostConfig": _host_config(spec, has_quota),
    }


def _host_config(spec: ContainerSpec, has_quota: bool) -> dict[str, Any]:
    """Limits, network, mounts and privileges."""
    memory = spec.memory_mb * 1024 * 1024
    config: dict[str, Any] = {
        "NetworkMode": "none" if spec.network == "none" else NETWORK,
        "Memory": memory,
        "MemorySwap": memory,  # memory and swap together: no swap
        "NanoCpus": spec.cpus * 10**9,
        "CpuShares": CPU_SHARES,
        "PidsLimit": spec.pids,
        "Init": False,
        "LogConfig": LOG,
        "Mounts": [_mount(mount) for mount in spec.mounts],
        "RestartPolicy": {"Name": "no"},
    }
    if has_quota and spec.storage_mb:
        config["StorageOpt"] = {"size": f"{spec.storage_mb}M"}
    if spec.harden:
        config["CapDrop"] = ["ALL"]
        config["SecurityOpt"] = ["no-new-privileges"]
    return config


def _mount(mount: Mount) -> dict[str, Any]:
    """One bind mount; unlike ``-v``, it is an error if the source does not exist."""
    return {
        "Type": "bind",
        "Source": str(mount.source),
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }


def _check(spec: ContainerSpec) -> None:
    """Refuses what the engine would answer with a message that could show a variable."""
    if not spec.command:
        raise ContainerError(f"start a container of image {spec.image}: no command")
    if min(spec.cpus, spec.memory_mb, spec.pids) < 1:
        raise ContainerError(
            f"start a container of image {spec.image}: cpus, memory and pids must be at least 1, "
            f"found {spec.cpus}, {spec.memory_mb} and {spec.pids}"
        )
    for place, (name, value) in enumerate(spec.environment.items()):
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ContainerError(
                f"start a container of image {spec.image}: variable {place} of the environment "
                "has an impossible name or value"
            )
    for mount in spec.mounts:
        if not mount.source.is_absolute() or not mount.target.startswith("/"):
            raise ContainerError(
                f"start a container of image {spec.image}: mount {mount.source} at "
                f"{mount.target}: both must be absolute"
            )
