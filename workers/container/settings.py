"""From a ``ContainerSpec`` to what the Docker engine is asked to create. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workers.container.interface import ContainerError, ContainerSpec, Mount

NETWORK = "apiary"
"""The node-wide bridge of containers with a public network."""

HOSTS = "/etc/hosts"
LOOPBACK = (
    "127.0.0.1\tlocalhost",
    # Not localhost too: what listens there listens on IPv4, and would be tried second.
    "::1\tip6-localhost ip6-loopback",
)
"""Lines of ``/etc/hosts``, which an image has empty: engines make it."""

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
        **({"NetworkDisabled": True} if has_own_hosts(spec) else {}),
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
        "Mounts": [_mount(mount) for mount in _mounts(spec)],
        "RestartPolicy": {"Name": "no"},
    }
    if spec.loopback_names and not has_own_hosts(spec):
        config["ExtraHosts"] = [f"{name}:127.0.0.1" for name in spec.loopback_names]
    if has_quota and spec.storage_mb:
        config["StorageOpt"] = {"size": f"{spec.storage_mb}M"}
    if spec.harden:
        config["CapDrop"] = ["ALL"]
        config["SecurityOpt"] = ["no-new-privileges"]
    return config


def has_own_hosts(spec: ContainerSpec) -> bool:
    """Whether a container has a hosts file of ours, and its engine nothing to do for its network.

    What Docker calls network mode ``none`` is a network to it: it enters the container's new
    namespace to find that there is nothing to do, which takes as long as the rest of the start.
    Told that networking is disabled it leaves the namespace as it was born, with a loopback and
    nothing else. Engines that do not know the word still have the network mode.
    """
    return spec.network == "none" and spec.hosts_file is not None


def hosts_text(spec: ContainerSpec) -> str:
    """The hosts file of such a container."""
    named = [f"127.0.0.1\t{name}" for name in spec.loopback_names]
    return "".join(f"{line}\n" for line in (*LOOPBACK, *named))


def _mounts(spec: ContainerSpec) -> list[Mount]:
    if spec.hosts_file is None or not has_own_hosts(spec):
        return list(spec.mounts)
    return [*spec.mounts, Mount(spec.hosts_file, HOSTS, read_only=False)]


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
    for mount in _mounts(spec):
        if not mount.source.is_absolute() or not mount.target.startswith("/"):
            raise ContainerError(
                f"start a container of image {spec.image}: mount {mount.source} at "
                f"{mount.target}: both must be absolute"
            )
