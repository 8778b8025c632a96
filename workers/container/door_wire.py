"""What a worker and a door helper say to each other: one line of JSON each way, strictly read.

A connection carries one request and its answer; the descriptor of a listening socket goes with
the answer as a right (unix(7), ``SCM_RIGHTS``).
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, NamedTuple

from workers.container.interface import (
    ContainerError,
    ContainerLostError,
    Killed,
    NoDoorError,
    Process,
)

VERSION = 1
REQUEST_BYTES = 512
ANSWER_BYTES = 2 * 1024 * 1024
MAX_TIMEOUT_S = 60.0
"""The longest that ``kill_all`` may be asked to try."""
_MAX_TOLD = 500
"""Processes told of each kind: more than a container's limit is for a log, not for an answer."""
_CONTAINER = re.compile(r"[0-9a-f]{64}")
_FAULTS: dict[str, type[ContainerError]] = {
    "lost": ContainerLostError,
    "no_door": NoDoorError,
    "failed": ContainerError,
}


class WireError(ValueError):
    """A line is not what the protocol says."""


class Request(NamedTuple):
    """What a helper is asked to do."""

    act: Literal["listen", "kill_all"]
    container: str
    """Its id, 64 hex digits: never a name, which could be given to another one."""
    port: int = 0
    """Of ``listen``."""
    timeout_s: float = 0.0
    """Of ``kill_all``."""


def write_request(request: Request) -> bytes:
    """The line that asks."""
    told: dict[str, Any] = {
        "version": VERSION,
        "act": request.act,
        "container": request.container,
    }
    if request.act == "listen":
        told["port"] = request.port
    else:
        told["timeout_s"] = request.timeout_s
    return json.dumps(told).encode() + b"\n"


def read_request(line: bytes) -> Request:
    """A request as a client wrote it.

    Raises:
        WireError: it is not one.
    """
    told = _object(line)
    act, container = told.get("act"), told.get("container")
    own = {"listen": "port", "kill_all": "timeout_s"}.get(act) if isinstance(act, str) else None
    if own is None or set(told) != {"version", "act", "container", own}:
        raise WireError("expected version, act (listen, kill_all), container, port or timeout_s")
    if not isinstance(container, str) or not _CONTAINER.fullmatch(container):
        raise WireError("container: expected an id of 64 hex digits")
    value = told[own]
    if act == "listen":
        if type(value) is not int or not 0 < value < 65536:
            raise WireError("port: expected 1 to 65535")
        return Request("listen", container, port=value)
    if type(value) not in (int, float) or not 0 < value <= MAX_TIMEOUT_S:
        raise WireError(f"timeout_s: expected more than 0, at most {MAX_TIMEOUT_S:g}")
    return Request("kill_all", container, timeout_s=float(value))


def write_answer(done: Killed | None = None) -> bytes:
    """The line of a success; what ``kill_all`` did, where that was asked."""
    told: dict[str, Any] = {"version": VERSION}
    if done is not None:
        told["killed"] = [list(process) for process in done.killed[:_MAX_TOLD]]
        told["survivors"] = [list(process) for process in done.survivors[:_MAX_TOLD]]
    return json.dumps(told).encode() + b"\n"


def write_fault(error: Exception) -> bytes:
    """The line of a failure."""
    kind = next(
        (name for name, kind in _FAULTS.items() if isinstance(error, kind)),
        "failed",
    )
    return json.dumps({"version": VERSION, "fault": kind, "message": str(error)}).encode() + b"\n"


def read_answer(line: bytes, act: str) -> Killed | None:
    """What a helper answered.

    Raises:
        ContainerError: what it says went wrong, as the same kind of error.
        WireError: it is no answer to the act.
    """
    told = _object(line)
    if set(told) == {"version", "fault", "message"}:
        raise _FAULTS.get(str(told["fault"]), ContainerError)(str(told["message"]))
    if act == "listen" and set(told) == {"version"}:
        return None
    if act == "kill_all" and set(told) == {"version", "killed", "survivors"}:
        return Killed(_processes(told["killed"]), _processes(told["survivors"]))
    raise WireError(f"it is no answer to {act}")


def _processes(rows: Any) -> tuple[Process, ...]:
    if not isinstance(rows, list):
        raise WireError("processes: expected a list")
    found = []
    for row in rows:
        match row:
            case [int(pid), int(parent), str(command)]:
                found.append(Process(pid, parent, command))
            case _:
                raise WireError("a process: expected pid, parent and command")
    return tuple(found)


def _object(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError("expected one line of JSON") from error
    if not isinstance(told, dict) or told.get("version") != VERSION:
        raise WireError(f"expected an object of version {VERSION}")
    return told
