"""The folder of a running trial, and guarded reads of what a container wrote there.

``out/`` is what the try leaves behind: its tree is the try's tree in the store. A path that
comes from a container is never trusted: names are ours, only regular files are read, no link is
followed, and every read is capped.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from workers.container.removal import remove_tree
from workers.container.scratch import disown, own
from workers.trial.secrets import Secrets


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
    def logs(self) -> Path:
        """Mounted read-only as ``/logs`` where the container's state is graded.

        It holds the two log folders in place, so that nobody inside can put others there.
        """
        return self.root / "logs"

    @property
    def tests(self) -> Path:
        """Mounted read-only as ``/tests`` where the container's state is graded.

        It is empty until the agents are dead.
        """
        return self.root / "tests"

    @property
    def artifacts(self) -> Path:
        """Mounted in the verifier as ``/logs/artifacts``."""
        return self.root / "artifacts"

    @property
    def verifier_logs(self) -> Path:
        """Mounted read-write in the verifier as ``/logs/verifier``."""
        return self.root / "verifier"

    @property
    def hosts(self) -> Path:
        """Mounted as ``/etc/hosts`` of the agents' container, which may change it."""
        return self.root / "hosts"

    @property
    def verifier_hosts(self) -> Path:
        """The same, of a verifier's own container."""
        return self.root / "verifier-hosts"

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
        for folder in (self.out, self.prompts, self.artifacts, self.inputs, self.tests, self.logs):
            folder.mkdir()
        for name in (self.agent_logs.name, self.verifier_logs.name):
            (self.logs / name).mkdir()
        for folder in (self.agent_logs, self.verifier_logs):
            folder.mkdir()
            folder.chmod(0o777)

    def empty_verifier_logs(self) -> None:
        """Removes what a verifier whose container has ended left, whatever it is; blocks.

        Raises:
            OSError: something there cannot be removed.
        """
        remove_tree(self.verifier_logs)
        self.verifier_logs.mkdir()
        self.verifier_logs.chmod(0o777)

    def write(self, name: str, data: bytes, secrets: Secrets) -> None:
        """Writes a file of the try, keys and tokens struck out."""
        target = self.out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(secrets.strike(data))

    def write_log(self, name: str, data: bytes, secrets: Secrets) -> None:
        """The same of a log; one in which nothing was written is no file, and costs no upload."""
        if data:
            self.write(name, data, secrets)
        else:  # what an earlier run of the verifier said is not said by this one
            (self.out / name).unlink(missing_ok=True)

    def keep(self) -> None:
        """Lets the folder stay when this process has ended."""
        disown(self.root)

    def remove(self) -> None:
        """Removes the folder with all that is in it; gone already is no error."""
        remove_tree(self.root)


class UnsafeFileError(Exception):
    """What stands at a path is not a regular file, or it is larger than the cap."""


def open_guarded(path: Path, access: int = os.O_RDONLY) -> int:
    """A descriptor for reading a regular file, no link followed.

    Args:
        path: what a container may have put there.
        access: ``O_RDONLY``, or ``O_RDWR`` to change it as well.

    Raises:
        FileNotFoundError: there is nothing.
        UnsafeFileError: there is something else than a regular file.
    """
    try:
        # O_NONBLOCK: opening a FIFO that a container put there must not hang.
        descriptor = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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


class Kept(NamedTuple):
    """What is kept of a log."""

    data: bytes
    """As the bytes came, whatever they are."""
    dropped: int
    """Bytes that were cut out of its middle."""


def read_head_and_tail(path: Path, max_bytes: int) -> Kept:
    """A log, whole or its first and last halves with a line between that says what is cut.

    Raises:
        FileNotFoundError: there is nothing.
        UnsafeFileError: no regular file.
    """
    with os.fdopen(open_guarded(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= max_bytes:
            return Kept(stream.read(max_bytes), 0)
        half = max_bytes // 2
        head = stream.read(half)
        stream.seek(size - half)
        tail = stream.read(half)
    dropped = size - 2 * half
    return Kept(head + f"\n[{dropped} bytes left out]\n".encode() + tail, dropped)


def read_log(path: Path, max_bytes: int) -> Kept:
    """Head and tail of a log, nothing where there is none, or why it is not to be read."""
    try:
        return read_head_and_tail(path, max_bytes)
    except FileNotFoundError:
        return Kept(b"", 0)
    except UnsafeFileError as error:
        return Kept(f"[{error}]\n".encode(), 0)


class LogTail:
    """Reads what was added to a log since the last look."""

    def __init__(
        self, path: Path, max_step: int = 1024 * 1024, words: Sequence[bytes] = ()
    ) -> None:
        """Starts at the beginning.

        Args:
            path: the log.
            max_step: bytes read in one look.
            words: only lines with one of them are given; none: all are. To look for them costs
                a hundredth of what it costs to take every line apart.
        """
        self.path = path
        self._max_step = max_step
        self._words = words
        self._rest = b""
        self.offset = 0
        """How far it has been read."""
        self.behind = False
        """Whether the last look left something unread."""
        self.moved = False
        """Whether the last look found anything new."""

    def lines(self) -> list[str]:
        """The whole lines added since the last call; none if there is no file yet.

        Raises:
            UnsafeFileError: what stands at the path is no regular file.
        """
        try:
            descriptor = open_guarded(self.path)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, "rb") as stream:
            self.offset = _next_data(descriptor, self.offset)
            stream.seek(self.offset)
            added = stream.read(self._max_step)
        self.offset += len(added)
        self.moved, self.behind = bool(added), len(added) == self._max_step
        whole, newline, rest = added.rpartition(b"\n")
        if not newline:
            self._rest = (self._rest + rest)[-self._max_step :]
            return []
        whole, self._rest = self._rest + whole, rest
        found = lines_with(whole, self._words) if self._words else whole.split(b"\n")
        return [line.decode("utf-8", "replace") for line in found]


def publish(folder: Path, final: Path) -> None:
    """Renames a folder that was filled beside its final place, so that it is there whole or not.

    Raises:
        OSError: it cannot be renamed, and nobody else's is there.
    """
    try:
        folder.rename(final)
    except OSError:
        # Another trial of this node was first; both hold the same bytes.
        if not final.is_dir():
            raise


def lines_with(data: bytes, words: Sequence[bytes]) -> list[bytes]:
    """The lines of a text that hold one of some words, in order."""
    begins = set()
    for word in words:
        place = data.find(word)
        while place >= 0:
            begins.add(data.rfind(b"\n", 0, place) + 1)
            end = data.find(b"\n", place)
            place = -1 if end < 0 else data.find(word, end)
    ends = [(begin, data.find(b"\n", begin)) for begin in sorted(begins)]
    return [data[begin:] if end < 0 else data[begin:end] for begin, end in ends]


def _next_data(descriptor: int, offset: int) -> int:
    """The next place of a file that is no hole, from an offset on; lseek(2).

    Whoever writes the log can make it a terabyte long with nothing in it.
    """
    # Asked before: what is written after the search failed must not count as a hole.
    size = os.fstat(descriptor).st_size
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError:  # nothing but a hole follows, or the offset is the end
        return max(offset, size)
