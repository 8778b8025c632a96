"""What a Harbor task may ask of its container that this version has not. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = re.compile(r"APIARY_.*|BUZZ_.*|PYTHONPATH|PYTHONDONTWRITEBYTECODE")
"""Variables by which the harness tells its own agent what to do."""
_TEMPLATE = re.compile(r"\$\{")
_REFUSED = {
    "gpus": "this version gives no container a GPU",
    "gpu_types": "this version gives no container a GPU",
    "tpu": "this version gives no container a TPU",
    "mcp_servers": "this version starts no MCP server beside an agent",
    "skills_dir": "this version hands no folder of skills to an agent; a condition lists skills",
    "healthcheck": "this version waits for no health check; a task's services are started by its "
    "own commands",
    "allowed_hosts": "this version opens the whole internet to a container, or none of it",
}


class Asked(Protocol):
    """The parts of ``[environment]`` that are looked at here."""

    @property
    def os(self) -> str:
        """The container's system."""
        ...

    @property
    def cpus(self) -> float | None:
        """Cores."""
        ...

    @property
    def network_mode(self) -> str | None:
        """By Harbor's words."""
        ...

    @property
    def workdir(self) -> str | None:
        """Where commands begin."""
        ...


def check_environment(asked: Asked) -> None:
    """Refuses what cannot be honoured.

    Raises:
        ValueError: beginning with the field's name.
    """
    for name, why in _REFUSED.items():
        if getattr(asked, name):
            raise ValueError(f"{name}: {why}")
    if asked.os.lower() != "linux":
        raise ValueError(f"os: containers run Linux here, not {asked.os!r}")
    if asked.network_mode == "allowlist":
        raise ValueError(
            "network_mode: 'allowlist': this version opens the whole internet to a container, or "
            "none of it"
        )
    if asked.cpus is not None and (asked.cpus != int(asked.cpus)):
        raise ValueError(f"cpus: whole cores are given out here, not {asked.cpus:g}")
    if asked.workdir is not None and not asked.workdir.startswith("/"):
        raise ValueError(f"workdir: expected an absolute path, found {asked.workdir!r}")


def check_variables(variables: Mapping[str, str]) -> None:
    """Refuses variables that cannot be given to a container as they stand.

    Raises:
        ValueError: beginning with ``env``.
    """
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ValueError(f"env: {name!r} is no variable's name, or its value has a zero byte")
        if _OURS.fullmatch(name):
            raise ValueError(f"env: {name} is the harness's own: it tells our agent what to do")
        if _TEMPLATE.search(value):
            raise ValueError(
                f"env: {name} refers to a variable of the machine that runs the sweep; "
                "this version passes plain values only"
            )
