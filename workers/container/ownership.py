"""Who owns a container: the labels, and the proof that an owner is gone."""

from __future__ import annotations

import os
from pathlib import Path

NODE = "apiary.node"
SWEEP = "apiary.sweep"
EXPIRES = "apiary.expires"
"""Unix seconds after which nobody needs the thing."""
OWNER = "apiary.owner"
"""``pid:start time:PID namespace`` of the process that made the thing."""
ENGINE = "apiary.engine"
"""Which of the owner's engines made it."""


def start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot (proc(5), stat field 22).

    Gives None if there is no such process, or only its entry is left: where the first process
    does not wait for orphans, as in many containers, that entry stays for ever.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold anything.
    state, *fields = stat.rpartition(")")[2].split()
    threads, started = fields[16], fields[18]
    # A main thread may end before the others: then the process lives although its entry is dead.
    return None if state in "ZX" and int(threads) <= 1 else started


def pid_namespace() -> str:
    """The inode of this process's PID namespace."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


def this_process() -> str:
    """The owner label of this process."""
    return f"{os.getpid()}:{start_time(os.getpid())}:{pid_namespace()}"


def is_gone(owner: str) -> bool:
    """Whether the process that an owner label names is proved to be gone.

    A label from another PID namespace, or a malformed one, proves nothing.
    """
    parts = owner.split(":")
    if len(parts) != 3 or not parts[0].isdigit() or parts[2] != pid_namespace():
        return False
    return start_time(int(parts[0])) != parts[1]
