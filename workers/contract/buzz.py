"""The production stack of Buzz: its programs by content, and how its providers are reached.

Source: Buzz's harness contract (which programs go into a container) and the environment of
``buzz-agent`` (which variables lead it to a provider).
"""

from __future__ import annotations

from typing import NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import model_validator

from workers.contract.base import Strict, sha256_hex
from workers.contract.condition import Effort, Sha256
from workers.contract.endpoint import BASE_URL_VARIABLES, Dialect, Endpoint

PROGRAMS = ("buzz-acp", "buzz-agent", "buzz-dev-mcp")
"""What goes into a container, and nothing else."""
EFFORT_DEFAULT: Effort = "medium"
"""Of an agent whose condition pins none, as in Buzz's harness."""
HEAD_BYTES = 64
"""Enough of a program to tell what it is made for."""

_ELF_MACHINES = {3: "i386", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64"}
_ELF_MACHINES[243] = "riscv64"
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}
_LINUX = (0, 3)
"""What ELF files for Linux say of their system."""
_FOREIGN = {b"\xcf\xfa\xed\xfe": "macOS", b"\xca\xfe\xba\xbe": "macOS", b"MZ": "Windows"}


class BuzzStack(Strict):
    """The programs of a sweep's agents, and what is presumed where a condition says nothing."""

    digests: dict[str, Sha256]
    """Program to the SHA-256 of its file: another program is another agent."""
    effort_default: Effort = EFFORT_DEFAULT
    """``BUZZ_AGENT_THINKING_EFFORT`` of agents whose condition pins none."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if set(self.digests) != set(PROGRAMS):
            raise ValueError(f"digests must be of {', '.join(PROGRAMS)}")
        return self

    @property
    def digest(self) -> str:
        """Of the programs together."""
        return sha256_hex("".join(f"{name}\0{self.digests[name]}\n" for name in PROGRAMS).encode())


def program_key(digest: str) -> str:
    """The store's key of a program; shared by all sweeps that use it."""
    return f"agents/{digest}"


def program_problem(head: bytes, machine: str) -> str:
    """Why a file cannot be run on Linux on a machine; empty: it can, as far as it says.

    Args:
        head: the file's first ``HEAD_BYTES``.
        machine: as ``uname -m`` has it.
    """
    wanted = _ALIASES.get(machine.lower(), machine.lower())
    if head.startswith(b"#!"):
        return ""
    for magic, system in _FOREIGN.items():
        if head.startswith(magic):
            return f"it is a program for {system}; a Linux build for {wanted} is needed"
    if not head.startswith(b"\x7fELF") or len(head) < 20:
        return f"it is no program; a Linux build for {wanted} is needed"
    if head[7] not in _LINUX:
        return f"it is a program for another system; a Linux build for {wanted} is needed"
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    built_for = _ELF_MACHINES.get(number, f"ELF machine {number}")
    if built_for == wanted:
        return ""
    return f"it is built for {built_for}, and this machine is {wanted}"


class Variables(NamedTuple):
    """By which variables ``buzz-agent`` finds a provider."""

    provider: str
    """``BUZZ_AGENT_PROVIDER``."""
    key: str
    base_url: str
    suffix: str
    """Of the base URL, before the path of the dialect."""


PROVIDERS: dict[str, Variables] = {
    name: Variables(name, key, BASE_URL_VARIABLES[name], suffix)
    for name, key, suffix in (
        ("anthropic", "ANTHROPIC_API_KEY", ""),
        ("openai", "OPENAI_COMPAT_API_KEY", "/v1"),
        ("openrouter", "OPENROUTER_API_KEY", "/v1"),
        ("databricks", "DATABRICKS_TOKEN", ""),
        ("databricks_v2", "DATABRICKS_TOKEN", ""),
    )
}
"""Every provider that ``buzz-agent`` knows: each has a variable that leads it to the gateway."""
SCRIPTED = PROVIDERS["openai"]
"""What a scripted endpoint is to it."""


def variables_of(endpoint: Endpoint) -> Variables:
    """The variables that lead ``buzz-agent`` to an endpoint's provider."""
    return PROVIDERS.get(endpoint.provider, SCRIPTED)


OPENAI_API = "OPENAI_COMPAT_API"
"""The variable by which ``buzz-agent`` chooses its dialect to an endpoint of OpenAI's kind."""


def openai_api(endpoint: Endpoint) -> str:
    """``OPENAI_COMPAT_API`` of an endpoint of OpenAI's kind: ``chat`` or ``responses``.

    What ``auto`` makes of the real host is written out, since the agent sees the gateway's.
    """
    said = endpoint.env.get(OPENAI_API, "auto")
    if said != "auto":
        return said
    host = urlsplit(endpoint.upstream or "").hostname or ""
    return "responses" if host == "api.openai.com" or host.endswith(".openai.com") else "chat"


def buzz_dialect(endpoint: Endpoint) -> Dialect | None:
    """The request dialect that ``buzz-agent`` speaks to an endpoint; None: by the model's name."""
    match endpoint.provider:
        case "openai":
            return "responses" if openai_api(endpoint) == "responses" else "chat"
        case "databricks_v2":
            return None
        case _:
            return endpoint.dialect
