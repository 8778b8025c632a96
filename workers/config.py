"""What a node takes from its surroundings; read once, when its actor starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Memory limit of this process's control group: version 2, version 1."""


@dataclass(frozen=True)
class NodeConfig:
    """The surroundings of one node."""

    environment: Mapping[str, str]
    """Provider keys are looked up here, by the names that endpoints give."""
    workspace: Path
    """For task folders and running trials; the Docker engine must see it under the same path."""
    cores: int
    memory_mb: int


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
    )


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
