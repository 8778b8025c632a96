"""The folder of a running trial, and guarded reads of what a container wrote there.

``out/`` is what the try leaves behind: its tree is the try's tree in the store. A path that
comes from a container is never trusted: names are ours, only regular files are read, no link is
followed, and every read is capped.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workers.container.removal import remove_tree
from workers.container.scratch import disown, own
from workers.trial.secrets import Secrets

MIB = 1024 * 1024
LEAST_BYTES = 4096
"""What an entry of a folder is counted as at least: its name and inode take room too."""


@dataclass(frozen=True)
class TrialFolder:
    """Where a running trial keeps its files."""

    root: Path

    @property
    def out(self) -> Path:
        """What is sealed."""
        return self.root / "out"

    @property
    def agent_logs(self) -> Path:
        """Mounted read-write as ``/logs/agents``."""
        return self.root / "agents"

    @property
    def prompts(self) -> Path:
        """Mounted as ``/opt/apiary/prompts``."""
        return self.root / "prompts"

    @property
    def artifacts(self) -> Path:
        """Mounted in the verifier as ``/logs/artifacts``."""
        return self.root / "artifacts"

    @property
    def verifier_logs(self) -> Path:
        """Mounted read-write in the verifier as ``/logs/verifier``."""
        return self.root / "verifier"

    @property
    def inputs(self) -> Path:
        """Mounted in the verifier as ``/inputs``, and sealed."""
        return self.out / "inputs"

    @property
    def ledger(self) -> Path:
        """The gateway's ledger of this trial."""
        return self.out / "usage.jsonl"

    def create(self) -> None:
        """Makes the folders; those that a container writes are open to any of its users.

        Nobody else of the machine may pass through the root: a container's own root can leave
        programs there that run as the host's.

        Raises:
            OSError: the disk refused.
        """
        self.root.mkdir(parents=True, mode=0o700)
        own(self.root)
        for folder in (self.out, self.prompts, self.artifacts, self.inputs):
            folder.mkdir()
        for folder in (self.agent_logs, self.verifier_logs):
            folder.mkdir()
            folder.chmod(0o777)

    def write(self, name: str, data: bytes, secrets: Secrets) -> None:
        """Writes a file of the try, keys and tokens struck out."""
        target = self.out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(secrets.strike(data))

    def keep(self) -> None:
        """Lets the folder stay when this process has ended."""
        disown(self.root)

    def remove(self) -> None:
        """Removes the folder with all that is in it; gone already is no error."""
        remove_tree(self.root)


class UnsafeFileError(Exception):
    """What stands at a path is not a regular file, or it is larger than the cap."""


def open_guarded(path: Path) -> int:
    """A descriptor for reading a regular file, no link followed.

    Raises:
        FileNotFoundError: there is nothing.
        UnsafeFileError: there is something else than a regular file.
    """
    try:
        # O_NONBLOCK: opening a FIFO that a container put there must not hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeFileError(f"{path.name} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafeFileError(f"{path.name} is not a regular file")
    return descriptor


def read_guarded(path: Path, max_bytes: int) -> bytes:
    """The whole of a regular file that a container may have written.

    Raises:
        FileNotFoundError: there is nothing.
        UnsafeFileError: no regular file, or more than ``max_bytes``.
    """
    with os.fdopen(open_guarded(path), "rb") as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise UnsafeFileError(f"{path.name} is larger than {max_bytes} bytes")
    return data


def read_head_and_tail(path: Path, max_bytes: int) -> bytes:
    """A log, whole or its first and last halves with a line between that says what is cut.

    Raises:
        FileNotFoundError: there is nothing.
        UnsafeFileError: no regular file.
    """
    with os.fdopen(open_guarded(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= max_bytes:
            return stream.read(max_bytes)
        half = max_bytes // 2
        head = stream.read(half)
        stream.seek(size - half)
        tail = stream.read(half)
    return head + f"\n[{size - 2 * half} bytes left out]\n".encode() + tail


def used_bytes(folder: Path, enough: int) -> int:
    """What a folder with all below it takes of the disk, counted until it is more than enough.

    A container may write there meanwhile: what is gone when it is looked at counts nothing.
    """
    used = 0
    waiting = [os.fspath(folder)]
    while waiting and used <= enough:
        # A folder that is gone, or deeper than a path may be long.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                used += max(found.st_blocks * 512, LEAST_BYTES)
                if used > enough:
                    break
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return used


class LogTail:
    """Reads what was added to a log since the last look."""

    def __init__(self, path: Path, max_step: int = 256 * 1024) -> None:
        self._path = path
        self._max_step = max_step
        self._offset = 0
        self._rest = b""

    def lines(self) -> list[str]:
        """The whole lines added since the last call; none if there is no file yet.

        Raises:
            UnsafeFileError: what stands at the path is no regular file.
        """
        try:
            descriptor = open_guarded(self._path)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, "rb") as stream:
            stream.seek(self._offset)
            added = stream.read(self._max_step)
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        self._rest = self._rest[-self._max_step :]
        return [line.decode("utf-8", "replace") for line in whole]
