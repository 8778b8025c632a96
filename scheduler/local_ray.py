"""The ground under a local Ray: its folder, its environment, and what it leaves. No Ray here.

*Why a folder of its own in the system's directory for temporary files:* Ray puts Unix sockets
59 characters below it, and a socket's path holds 107 bytes; and everything that Ray starts
names this folder in its command line, so that what is left can be told from everything else.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

LONGEST_FOLDER = 40
"""Bytes of the folder's path, so that the sockets below it fit."""

LOGS_KEPT = 5
"""Runs whose worker logs are kept."""

LOG_BYTES = 1024 * 1024
"""Kept of one worker log: its end."""

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
        root = Path(tempfile.gettempdir())
        if len(os.fsencode(root)) > LONGEST_FOLDER - len(_PREFIX) - 16:
            root = Path("/tmp")
        _remove_stale(root)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._logs = logs / f"{started}-{os.getpid()}"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._token = self.path / "token"
        self._token.touch(mode=0o600)
        self._token.write_text(_TOKEN)

    @property
    def log(self) -> Path:
        """What Ray would have written to the terminal."""
        return self._logs / "ray.log"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that Ray must find: its token is on and ours, its usage statistics off."""
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self._token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def remove(self, more: Iterable[tuple[int, str]] = ()) -> list[int]:
        """Ends what still runs of this Ray, keeps its workers' logs, removes the folder.

        Args:
            more: processes (id, start time) of actors, whose command line does not say whose
                they are.

        Returns:
            The processes that had to be killed.
        """
        killed = self._kill(dict(more))
        self._keep_logs()
        shutil.rmtree(self.path, ignore_errors=True)
        return killed

    def _kill(self, actors: dict[int, str]) -> list[int]:
        killed: list[int] = []
        for _ in range(20):
            left = [pid for pid in processes_naming(str(self.path)) if pid != os.getpid()]
            left += [pid for pid, started in actors.items() if start_time(pid) == started]
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed += left
            time.sleep(0.05)
        return sorted(set(killed))

    def _keep_logs(self) -> None:
        for log in sorted(self.path.glob("session_2*/logs/worker-*")):
            if log.is_file() and not log.is_symlink() and log.stat().st_size > 0:
                _copy_end(log, self._logs / log.name)
        if not any(path.stat().st_size for path in self._logs.iterdir()):
            shutil.rmtree(self._logs, ignore_errors=True)
        runs = sorted(path for path in self._logs.parent.iterdir() if path.is_dir())
        for old in runs[:-LOGS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def processes_naming(text: str) -> Iterator[int]:
    """The processes whose command line holds the text."""
    wanted = os.fsencode(text)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if wanted in (entry / "cmdline").read_bytes():
                    yield int(entry.name)


def start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot (proc(5)); None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _remove_stale(root: Path) -> None:
    for path in root.glob(f"{_PREFIX}*-*"):
        owner = path.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            ours = path.lstat().st_uid == os.geteuid()
            if ours and owner.isdecimal() and start_time(int(owner)) is None:
                shutil.rmtree(path, ignore_errors=True)


def _copy_end(source: Path, target: Path) -> None:
    with source.open("rb") as stream:
        stream.seek(max(0, source.stat().st_size - LOG_BYTES))
        target.write_bytes(stream.read(LOG_BYTES))
