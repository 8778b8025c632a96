"""Processes of this machine, named so that their end can be told for certain. Linux."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def this_process() -> str:
    """The name of this process: its machine's boot, its PID namespace, its id and its start.

    Empty where the system does not tell them.
    """
    if not _machine():
        return ""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether a process is certainly over; one of another machine or container never is."""
    machine, _, process = name.partition("/")
    pid, _, started = process.partition("/")
    if not pid.isdecimal() or machine != _machine():
        return False
    return _started(int(pid)) != started


def is_running(pid: int) -> bool:
    """Whether a process of this machine runs, and is not a zombie."""
    return bool(_started(pid))


def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process was started, in clock ticks since boot; empty if it is over."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    # The name of the program, in parentheses, may hold anything.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]
