"""What a node takes from its surroundings; read once, when its actor starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Memory limit of this process's control group: version 2, version 1."""


LAST_PORT = 65535

METRICS_VARIABLE = "APIARY_NODE_METRICS"
"""``address:port`` where a node serves its metrics."""

DOOR_VARIABLE = "APIARY_DOOR"
"""Names the socket of a door helper, for workers that may not act inside containers themselves."""


class MetricsAddress(NamedTuple):
    """Where metrics are served."""

    address: str
    port: int
    """0: a free one."""


class ConfigError(Exception):
    """A variable of the node's environment says what cannot be meant."""


@dataclass(frozen=True)
class NodeConfig:
    """The surroundings of one node."""

    environment: Mapping[str, str]
    """Provider keys are looked up here, by the names that endpoints give."""
    workspace: Path
    """For task folders and running trials; the Docker engine must see it under the same path."""
    cores: int
    memory_mb: int
    door: Path | None = None
    """The socket of a door helper."""
    metrics: str = ""
    """``address:port``; empty: the driver's word counts."""


def read_config(workspace: str | None) -> NodeConfig:
    """The configuration of this process.

    Args:
        workspace: what the driver says; null: ``APIARY_WORKSPACE``, else a folder of this user
            in the system's directory for temporary files.
    """
    environment = dict(os.environ)
    folder = workspace or environment.get("APIARY_WORKSPACE") or _default_workspace()
    return NodeConfig(
        environment=environment,
        workspace=Path(folder).absolute(),
        cores=len(os.sched_getaffinity(0)),
        memory_mb=_memory_mb(),
        door=Path(environment[DOOR_VARIABLE]) if environment.get(DOOR_VARIABLE) else None,
        metrics=environment.get(METRICS_VARIABLE, ""),
    )


def metrics_address(text: str) -> MetricsAddress | None:
    """Reads ``address:port``, an IPv6 address in brackets; None of an empty text.

    Raises:
        ConfigError: it is something else.
    """
    if not text:
        return None
    address, _, port = text.rpartition(":")
    bare = address.removeprefix("[").removesuffix("]")
    bracketed = address.startswith("[") and address.endswith("]")
    if not bare or bracketed != (":" in bare) or not port.isdecimal() or int(port) > LAST_PORT:
        raise ConfigError(
            f"{METRICS_VARIABLE}: expected address:port, for example 0.0.0.0:9464 or [::1]:0, "
            f"found {text!r}"
        )
    return MetricsAddress(bare, int(port))


def _default_workspace() -> str:
    return str(Path(tempfile.gettempdir()) / f"apiary-{os.geteuid()}" / "work")


def _memory_mb() -> int:
    """Physical memory, or the control group's limit where that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            found.append(int(text))
    return min(found) // (1024 * 1024)
