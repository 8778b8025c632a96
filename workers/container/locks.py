"""Locks that hold on the whole node, and the directory where they lie."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from workers.container.calls import Deadline
from workers.container.interface import ContainerError

_POLL_S = 0.1


def node_directory() -> Path:
    """Where this user's processes on this node keep locks and shared files; made if needed.

    Raises:
        ContainerError: somebody else made it first.
    """
    path = Path(tempfile.gettempdir()) / f"apiary-{os.geteuid()}"
    path.mkdir(mode=0o755, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ContainerError(f"use the directory {path}: it is not ours; remove it")
    return path


def lock_file(directory: Path, name: str) -> Path:
    """The file of the lock ``name`` (any text)."""
    locks = directory / "locks"
    locks.mkdir(mode=0o755, parents=True, exist_ok=True)
    return locks / hashlib.sha256(name.encode()).hexdigest()[:32]


@contextlib.asynccontextmanager
async def node_lock(directory: Path, name: str, deadline: Deadline) -> AsyncIterator[None]:
    """Holds the node-wide lock ``name``.

    It is tried again and again instead of waited for, so that waiting takes no thread. The
    file stays: to remove it would let two holders lock two different files.

    Raises:
        CallTimeoutError: another holder kept it past the deadline.
    """
    descriptor = os.open(lock_file(directory, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not try_lock(descriptor):  # noqa: ASYNC110 (the holder is another process)
            await asyncio.sleep(min(_POLL_S, deadline.left_s()))
        yield
    finally:
        os.close(descriptor)  # the lock goes with the descriptor


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Takes a lock on an open file unless another holder has it (flock(2))."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Holds:
    """What this process uses, so that nobody removes it: a shared lock on each name.

    The kernel gives them up when the process ends, however it ends.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptors: dict[str, int] = {}
        self.close = weakref.finalize(self, _close_all, self._descriptors)
        """Gives all of them up."""

    def hold(self, name: str) -> bool:
        """Holds a name until ``close``.

        Returns:
            Whether it is held: not if somebody is removing the thing at this moment.
        """
        if name not in self._descriptors:
            path = lock_file(self._directory, name)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if not try_lock(descriptor, fcntl.LOCK_SH):
                os.close(descriptor)
                return False
            self._descriptors[name] = descriptor
        return True


@contextlib.contextmanager
def unheld(directory: Path, name: str) -> Iterator[bool]:
    """Whether nobody holds a name; while it is open, nobody can begin to."""
    path = lock_file(directory, name)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield try_lock(descriptor)
    finally:
        os.close(descriptor)


def _close_all(descriptors: dict[str, int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
