"""The ground under a local Ray: its folder, its environment, and what it leaves. No Ray here.

*Why a folder of its own in the system's directory for temporary files:* Ray puts Unix sockets
59 characters below it, and a socket's path holds 107 bytes; and everything that Ray starts
inherits a variable that names this folder, so that what is left of it can be told from
everything else.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import tempfile
import time
from pathlib import Path

WORKSPACE = "node"
"""The folder of ``.apiary`` in which a local node works."""

LONGEST_FOLDER = 40
"""Bytes of the folder's path, so that the sockets below it fit."""

TOKEN_VARIABLE = "RAY_AUTH_TOKEN_PATH"  # noqa: S105 - the name of a variable
UNHANDLED_VARIABLE = "RAY_DISABLE_FAILURE_SIGNAL_HANDLER"
"""Without it Ray aborts the driver 3 s after a SIGTERM that the driver handles itself."""

HEADLESS_VARIABLE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""Ray's native code ends a process that has had no head for so long, without a report."""

DRIVER_ENVIRONMENT = {UNHANDLED_VARIABLE: "1", HEADLESS_VARIABLE: "900"}
"""What Ray must find in a driver's environment, whichever cluster it uses."""

SERVERS = {b"gcs_server": "Ray's control service (GCS)", b"raylet": "Ray's node manager (raylet)"}
"""By program."""

PATIENCE_S = 3.0
"""What Ray started may take to end by itself once Ray was left."""
KILL_S = 10.0

LOGS_KEPT = 5
"""Runs whose worker logs are kept."""

LOG_FILE_BYTES = 8 * 1024 * 1024
"""At which a log of Ray or of a worker is rotated while it runs."""
LOG_FILES_KEPT = 1
"""Rotated files of each log that stay beside it."""

LOG_BYTES = 1024 * 1024
"""Kept of one worker log: its end."""

TOKEN_FILE = "token"  # noqa: S105 - the name of a file
_HEADING = re.compile(rb":(job_id|actor_name|task_name):")
_PREFIX = "apiary-ray-"
_TOKEN = secrets.token_hex(32)
"""One for the life of this process: Ray reads it once, however often it is started."""


class RayFolder:
    """Where one local Ray keeps its session; ``remove`` ends it."""

    def __init__(self, logs: Path) -> None:
        """Makes the folder, and removes those of drivers that are gone.

        Args:
            logs: where the terminal noise and the workers' logs go, of the last few runs.

        Raises:
            OSError: the folder cannot be made.
        """
        root = _root()
        remove_stale()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._logs = logs / f"{started}-{os.getpid()}"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._token = self.path / TOKEN_FILE
        self._token.touch(mode=0o600)
        self._token.write_text(_TOKEN)

    @property
    def log(self) -> Path:
        """What Ray would have written to the terminal."""
        return self._logs / "ray.log"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that Ray must find: its token is on and ours, its usage statistics off.

        Its memory monitor is off too: where memory runs short it would end the node, whose
        containers use it, and with the node every trial.
        """
        return {
            "RAY_AUTH_MODE": "token",
            TOKEN_VARIABLE: str(self._token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ROTATION_MAX_BYTES": str(LOG_FILE_BYTES),
            "RAY_ROTATION_BACKUP_COUNT": str(LOG_FILES_KEPT),
            "RAY_memory_monitor_refresh_ms": "0",
            **DRIVER_ENVIRONMENT,
        }

    def servers(self) -> dict[str, int]:
        """The processes without which this Ray is lost, by what they are."""
        found = {}
        for pid in self.processes():
            program = os.path.basename(_read(pid, "cmdline").split(b"\0")[0])
            if what := SERVERS.get(program):
                found[what] = pid
        return found

    def remove(self) -> list[int]:
        """Ends what still runs of this Ray, keeps its workers' logs, removes the folder.

        Returns:
            The processes that had to be killed.
        """
        killed = self._kill(PATIENCE_S)
        self._keep_logs()
        shutil.rmtree(self.path, ignore_errors=True)
        return killed

    def end_now(self) -> list[int]:
        """Ends what still runs of this Ray without waiting; ``remove`` is to follow.

        Returns:
            The processes that were killed.
        """
        return self._kill(0.0)

    def _kill(self, patience_s: float) -> list[int]:
        """Processes that end by themselves get a moment to do so."""
        killed: set[int] = set()
        give_up = time.monotonic() + KILL_S
        patience = time.monotonic() + patience_s
        while (left := self.processes()) and time.monotonic() < give_up:
            for pid in left if time.monotonic() > patience else ():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            time.sleep(0.05)
        return sorted(killed)

    def processes(self) -> list[int]:
        """What runs of this Ray: it has our variable, and Ray in its command line."""
        return _processes_of(self.path)

    def _keep_logs(self) -> None:
        """Of every worker that said something beside Ray's own headings, the end."""
        for log in sorted(self.path.glob("session_2*/logs/worker-*")):
            if log.is_file() and not log.is_symlink():
                _keep_end(log, self._logs / log.name)
        with contextlib.suppress(OSError):
            self._logs.rmdir()  # only if nothing is in it
        runs = sorted(path for path in self._logs.parent.iterdir() if path.is_dir())
        for old in runs[:-LOGS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def _process_ids() -> list[int]:
    names = (entry.name for entry in Path("/proc").iterdir())
    return [int(name) for name in names if name.isdecimal() and int(name) != os.getpid()]


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty if it is gone, a zombie, or another user's."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _processes_of(folder: Path) -> list[int]:
    mark = os.fsencode(f"{TOKEN_VARIABLE}={folder / TOKEN_FILE}")
    found = []
    for pid in _process_ids():
        command = _read(pid, "cmdline")
        if b"ray" in command and (
            mark in _read(pid, "environ").split(b"\0")
            or (command.startswith(b"ray::") and _has_open(pid, folder))
        ):
            found.append(pid)
    return found


def _has_open(pid: int, folder: Path) -> bool:
    """Whether a process has a file of the folder open.

    Ray's own workers write their titles over their environment, and sometimes over the variable.
    """
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(entry).startswith(f"{folder}/"):
                    return True
    return False


def _root() -> Path:
    """Where Ray's folders are made."""
    root = Path(tempfile.gettempdir())
    if len(os.fsencode(root)) > LONGEST_FOLDER - len(_PREFIX) - 16:
        return Path("/tmp")
    return root


def stale() -> list[Path]:
    """The folders of drivers that are gone: no such process, or nothing of it but its entry."""
    found = []
    for path in sorted(_root().glob(f"{_PREFIX}*-*")):
        owner = path.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            ours = path.lstat().st_uid == os.geteuid()
            if ours and owner.isdecimal() and not _read(int(owner), "cmdline"):
                found.append(path)
    return found


def remove_stale() -> list[Path]:
    """Ends what still runs of drivers that are gone, and removes their folders.

    Returns:
        The folders.
    """
    found = stale()
    for path in found:
        for pid in _processes_of(path):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(path, ignore_errors=True)
    return found


def _keep_end(source: Path, target: Path) -> None:
    with source.open("rb") as stream:
        stream.seek(max(0, source.stat().st_size - LOG_BYTES))
        said = stream.read(LOG_BYTES)
    if any(line and not _HEADING.match(line) for line in said.splitlines()):
        target.write_bytes(said)
