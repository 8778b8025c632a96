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
    """One stream of a command: its first ``CAPTURE_BYTES``, its end, and how much there was."""

    data: bytearray = field(default_factory=bytearray)
    total: int = 0
    beyond: bytes = b""
    """The end of what did not fit."""

    def add(self, piece: bytes) -> None:
        """Takes in a piece."""
        self.total += len(piece)
        room = CAPTURE_BYTES - len(self.data)
        self.data += piece[:room]
        self.beyond = (self.beyond + piece[room:])[-TAIL_BYTES:]

    @property
    def tail(self) -> bytes:
        """The last ``TAIL_BYTES`` of all there was."""
        return (bytes(self.data[-TAIL_BYTES:]) + self.beyond)[-TAIL_BYTES:]

    @property
    def dropped(self) -> int:
        """Bytes of which nothing is kept: they came after the first and before the last."""
        return self.total - len(self.data) - len(self.beyond)


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
            [self._program, "-c", command.encode("utf-8", "replace")],
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
        reaping = threading.Lock()
        waiter = threading.Thread(target=_reap, args=(process, ended_write, reaping), daemon=True)
        try:
            waiter.start()
        except RuntimeError as error:
            _abandon(process, ended_write)
            raise OSError("no thread is left to watch a command with") from error
        in_time = _read_until_ended(streams, ended, deadline)
        with reaping:
            if not in_time and process.returncode is None:
                _kill_group(process.pid)
        waiter.join()
        for stream, capture in streams.items():
            # A child that left the group may hold the pipe open: take what is there, no more.
            _drain(stream.fileno(), capture)
    return in_time


def _streams(
    process: subprocess.Popen[bytes], stdout: Capture, stderr: Capture
) -> list[tuple[IO[bytes], Capture]]:
    pairs = ((process.stdout, stdout), (process.stderr, stderr))
    return [(stream, capture) for stream, capture in pairs if stream is not None]


def _reap(process: subprocess.Popen[bytes], ended_write: int, reaping: threading.Lock) -> None:
    """Waits for the shell, kills what is left of its group, and only then reaps it.

    Until it is reaped nobody else can get its process id, so the kill hits the right group.
    """
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with reaping:
        _kill_group(process.pid)
        process.wait()
    os.close(ended_write)


def _abandon(process: subprocess.Popen[bytes], ended_write: int) -> None:
    """Ends a command that cannot be watched: the container's limit of threads is reached."""
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
        for stream, capture in streams.items():
            selector.register(stream, selectors.EVENT_READ, capture)
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            for key, _ in selector.select(remaining):
                if key.fd == ended:
                    return True
                if not _read_piece(key.fd, key.data):
                    selector.unregister(key.fileobj)


def _drain(descriptor: int, capture: Capture) -> None:
    while capture.total < 2 * CAPTURE_BYTES and _read_piece(descriptor, capture):
        pass


def _read_piece(descriptor: int, capture: Capture) -> bool:
    """Takes what is there; False: nothing more, now or ever."""
    try:
        piece = os.read(descriptor, _READ_BYTES)
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
        if not _is_long(capture):
            told[name] = capture.data.decode(errors="replace")
            continue
        told[name] = capture.tail.decode(errors="replace")
        told[f"{name}_truncated"] = True
        notes.append(f"{name} is cut to its end")
        artifact = _keep(capture, name)
        if artifact:
            told[f"{name}_artifact"] = artifact
            notes[-1] += f"; {_what_is_in(capture)} is in {artifact}"
    told["timed_out"] = result.timed_out
    told["duration_ms"] = result.duration_ms
    if result.timed_out:
        notes.append("the command was killed because it took too long")
    if notes:
        told["notes"] = notes
    return json.dumps(told, ensure_ascii=False)


def _is_long(capture: Capture) -> bool:
    return capture.total > MAX_BYTES or capture.data.count(b"\n") > MAX_LINES


def _what_is_in(capture: Capture) -> str:
    if not capture.dropped:
        return "the whole"
    return f"the whole but {capture.dropped} bytes before the last {len(capture.beyond)}"


def _keep(capture: Capture, name: str) -> str:
    """The path of a file with the stream as it came; empty where no file can be written."""
    try:
        with tempfile.NamedTemporaryFile(
            prefix=f"shell-{name}-", suffix=".txt", delete=False
        ) as artifact:
            artifact.write(capture.data)
            if capture.dropped:
                artifact.write(b"\n[%d bytes left out]\n" % capture.dropped)
            artifact.write(capture.beyond)
    except OSError:
        return ""
    return artifact.name
