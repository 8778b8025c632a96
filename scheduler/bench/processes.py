"""Processes that a bench starts, and everything that they start: found, waited for, ended.

All of them inherit a variable with a mark. A process that has written its title over its
environment, as Ray's workers do, is known by a file of the bench's folder that it has open.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "APIARY_BENCH"
END_S = 20.0
"""For processes to be gone after SIGKILL."""


class BenchError(Exception):
    """The bench itself could not go on; the message says what did not happen, and where to look."""


@dataclass(frozen=True)
class Found:
    """A process of the bench's."""

    pid: int
    title: str
    """Its command line, or what it wrote over it."""


def wait_for(what: str, condition: Callable[[], bool], within_s: float) -> None:
    """Waits until a condition holds.

    Raises:
        BenchError: it did not in time.
    """
    give_up = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > give_up:
            raise BenchError(f"{what}: not within {within_s:g} s")
        time.sleep(0.05)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    mark: str,
    folder: Path,
    log: Path,
    *,
    steered: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own.

    Args:
        command: program and arguments.
        environment: of the process; the mark is added.
        mark: by which it and what it starts are found.
        folder: its working directory.
        log: takes what it writes.
        steered: whether it has a standard input.
    """
    with log.open("ab") as stream:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, MARK: mark},
            stdin=subprocess.PIPE if steered else subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


def marked(mark: str, folder: Path | None = None) -> list[Found]:
    """The processes with a mark, or with a file of the folder open if they are Ray's."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            place = Path(f"/proc/{pid}")
            title = (place / "cmdline").read_bytes()
            if not title:
                continue  # A zombie, or the kernel's.
            if wanted in (place / "environ").read_bytes().split(b"\0") or (
                folder is not None and title.startswith(b"ray::") and _has_open(place, folder)
            ):
                shown = title.replace(b"\0", b" ").decode(errors="replace").strip()
                found.append(Found(pid, shown))
    return found


def end_all(mark: str, folder: Path | None = None) -> list[Found]:
    """Kills every process with a mark.

    Returns:
        Those that would not go.
    """
    give_up = time.monotonic() + END_S
    while (left := marked(mark, folder)) and time.monotonic() < give_up:
        for each in left:
            send(each.pid, signal.SIGKILL)
        time.sleep(0.05)
    return left


def send(pid: int, number: int) -> None:
    """A signal, to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def send_group(pid: int, number: int) -> None:
    """A signal to a whole process group, which may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdecimal())


def _has_open(place: Path, folder: Path) -> bool:
    for entry in os.listdir(place / "fd"):
        with contextlib.suppress(OSError):
            if os.readlink(place / "fd" / entry).startswith(f"{folder}/"):
                return True
    return False
