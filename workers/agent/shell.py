"""The shell tool: one command, its own process group, nothing of it left afterwards.

Rules of buzz-dev-mcp: standard input is ``/dev/null``; the whole group is killed after every
call, successful ones too; long output is cut to its end, with the whole in a file.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import IO

DEFAULT_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 600.0
MAX_BYTES = 50 * 1024
MAX_LINES = 2000
TAIL_BYTES = 8 * 1024
CAPTURE_BYTES = 10 * 1000 * 1000
TIMEOUT_EXIT_CODE = 124
_READ_BYTES = 64 * 1024


@dataclass
class Capture:
    """One stream of a command: its first ``CAPTURE_BYTES``, and how much there was."""

    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, piece: bytes) -> None:
        """Takes in a piece; what goes beyond the cap is counted and dropped."""
        self.total += len(piece)
        room = CAPTURE_BYTES - len(self.data)
        if room > 0:
            self.data += piece[:room]


@dataclass(frozen=True)
class ShellResult:
    """How a command ended, and what it wrote."""

    exit_code: int
    stdout: Capture
    stderr: Capture
    timed_out: bool
    duration_ms: int


class Shell:
    """Runs commands in one environment.

    Args:
        variables: the whole environment of every command.
        program: the shell; empty: bash where there is one, else sh.
    """

    def __init__(self, variables: Mapping[str, str], program: str = "") -> None:
        self._variables = dict(variables)
        self._program = program or shutil.which("bash") or shutil.which("sh") or "/bin/sh"

    def run(self, command: str, workdir: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> ShellResult:
        """Runs ``command`` to its end, or kills it after ``timeout_s`` seconds.

        Raises:
            OSError: the shell could not be started, for example for want of ``workdir``.
        """
        start = time.monotonic()
        process = subprocess.Popen(
            [self._program, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=workdir,
            env=self._variables,
            start_new_session=True,
        )
        stdout, stderr = Capture(), Capture()
        timed_out = not _watch(process, stdout, stderr, start + timeout_s)
        exit_code = TIMEOUT_EXIT_CODE if timed_out else _exit_code(process.returncode)
        duration_ms = int((time.monotonic() - start) * 1000)
        return ShellResult(exit_code, stdout, stderr, timed_out, duration_ms)


def _watch(
    process: subprocess.Popen[bytes], stdout: Capture, stderr: Capture, deadline: float
) -> bool:
    """Reads both streams until the shell has exited; False: it was killed at the deadline."""
    ended, ended_write = os.pipe()
    with ExitStack() as stack:
        stack.callback(os.close, ended)
        streams = dict(_streams(process, stdout, stderr))
        for stream in streams:
            stack.callback(stream.close)
            os.set_blocking(stream.fileno(), False)
        waiter = threading.Thread(target=_reap, args=(process, ended_write), daemon=True)
        waiter.start()
        in_time = _read_until_ended(streams, ended, deadline)
        if not in_time:
            _kill_group(process.pid)
        waiter.join()
        for stream, capture in streams.items():
            # A child that left the group may hold the pipe open: take what is there, no more.
            _drain(stream, capture)
    return in_time


def _streams(
    process: subprocess.Popen[bytes], stdout: Capture, stderr: Capture
) -> list[tuple[IO[bytes], Capture]]:
    pairs = ((process.stdout, stdout), (process.stderr, stderr))
    return [(stream, capture) for stream, capture in pairs if stream is not None]


def _reap(process: subprocess.Popen[bytes], ended_write: int) -> None:
    """Waits for the shell, kills what is left of its group, and only then reaps it.

    Until it is reaped nobody else can get its process id, so the kill hits the right group.
    """
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    _kill_group(process.pid)
    process.wait()
    os.close(ended_write)


def _kill_group(leader: int) -> None:
    # The group may be gone, or what is left of it may have changed its user.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _read_until_ended(streams: Mapping[IO[bytes], Capture], ended: int, deadline: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            for key, _ in selector.select(remaining):
                if key.fd == ended:
                    return True
                stream = next(stream for stream in streams if stream.fileno() == key.fd)
                if not _read_piece(stream, streams[stream]):
                    selector.unregister(stream)


def _drain(stream: IO[bytes], capture: Capture) -> None:
    while capture.total < 2 * CAPTURE_BYTES and _read_piece(stream, capture):
        pass


def _read_piece(stream: IO[bytes], capture: Capture) -> bool:
    """Takes what is there; False: nothing more, now or ever."""
    try:
        piece = os.read(stream.fileno(), _READ_BYTES)
    except BlockingIOError:
        return False
    capture.add(piece)
    return bool(piece)


def _exit_code(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


def describe(result: ShellResult) -> str:
    """What the model is told of a command: one JSON object."""
    told: dict[str, object] = {"exit_code": result.exit_code}
    notes = []
    for name, capture in (("stdout", result.stdout), ("stderr", result.stderr)):
        text, artifact = _shorten(capture, name)
        told[name] = text
        if artifact:
            told[f"{name}_truncated"] = True
            told[f"{name}_artifact"] = artifact
            notes.append(f"{name} is cut to its end; the whole is in {artifact}")
    told["timed_out"] = result.timed_out
    told["duration_ms"] = result.duration_ms
    if result.timed_out:
        notes.append("the command was killed because it took too long")
    if notes:
        told["notes"] = notes
    return json.dumps(told, ensure_ascii=False)


def _shorten(capture: Capture, name: str) -> tuple[str, str]:
    """The text to tell, and the path of the whole if that is not all of it."""
    data = bytes(capture.data)
    if capture.total <= MAX_BYTES and data.count(b"\n") <= MAX_LINES:
        return data.decode(errors="replace"), ""
    with tempfile.NamedTemporaryFile(
        prefix=f"shell-{name}-", suffix=".txt", delete=False
    ) as artifact:
        artifact.write(data)
    return data[-TAIL_BYTES:].decode(errors="replace"), artifact.name
