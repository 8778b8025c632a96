"""A task folder as bytes: its digest, and the archive in which it reaches a node.

The digest covers the task's folder and the verifier kit: every regular file's path,
executable bit and contents, and nothing else. Times, owners and empty folders (which git
does not carry) do not count, so two check-outs of one commit have one digest. A node gets
the folder from the store by that digest; there is no shared file system.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workers.contract.base import FormatError, sha256_hex

MAX_FILES = 10_000
"""Files of a task folder and the kit together."""
MAX_BYTES = 256 * 1024 * 1024
"""Their contents together."""
MAX_NAME_BYTES = 1024
"""Of one path inside the archive."""

_VERSION = b"apiary-task-folder-1\n"
_LEFT_OUT = "__pycache__"
_ROOTS = ("task", "kit")


class TaskFolderError(FormatError):
    """A task folder, or an archive of one, holds what it may not, or cannot be read."""


class FolderEntry(NamedTuple):
    """One regular file."""

    path: str
    """``task/…`` or ``kit/…``, ``/``-separated."""
    executable: bool
    data: bytes


def archive_key(digest: str) -> str:
    """The store's key of a task's archive; shared by all sweeps that use the task."""
    return f"tasks/{digest}.tar"


def read_folder(folder: Path, kit: Path | None) -> tuple[FolderEntry, ...]:
    """Every file of a task folder and of the verifier kit, sorted by path.

    Raises:
        TaskFolderError: a folder is missing, too large, unreadable, or holds anything but
            regular files and folders (links, sockets, devices).
    """
    entries: list[FolderEntry] = []
    left = MAX_BYTES
    for root, base in (("task", folder), ("kit", kit)):
        if base is None:
            continue
        for path in _files(base):
            name = f"{root}/{path.relative_to(base).as_posix()}"
            _check_name(name)
            entry = _read(path, name, left)
            left -= len(entry.data)
            entries.append(entry)
            if len(entries) > MAX_FILES:
                raise TaskFolderError(f"{folder}: more than {MAX_FILES} files")
    return tuple(sorted(entries, key=lambda entry: entry.path.encode()))


def entries_digest(entries: tuple[FolderEntry, ...]) -> str:
    """The digest of sorted entries: a hash of a line per file, each with its own hash."""
    lines = (
        f"{entry.path}\0{'x' if entry.executable else '-'}\0{sha256_hex(entry.data)}\n".encode()
        for entry in entries
    )
    return sha256_hex(_VERSION + b"".join(lines))


def digest_of(folder: Path, kit: Path | None) -> str:
    """The digest of a task folder with its verifier kit.

    Raises:
        TaskFolderError: as ``read_folder``.
    """
    return entries_digest(read_folder(folder, kit))


def pack_entries(entries: tuple[FolderEntry, ...]) -> bytes:
    """A tar of sorted entries: the same bytes for the same digest, on any machine."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            member = tarfile.TarInfo(entry.path)
            member.size = len(entry.data)
            member.mode = 0o755 if entry.executable else 0o644
            archive.addfile(member, io.BytesIO(entry.data))
    return buffer.getvalue()


def pack(folder: Path, kit: Path | None) -> bytes:
    """A task folder and the verifier kit as one tar: ``task/…`` and ``kit/…``.

    Raises:
        TaskFolderError: as ``read_folder``.
    """
    return pack_entries(read_folder(folder, kit))


def unpack(data: bytes, target: Path) -> None:
    """Writes an archive's files below ``target``, which is made or must be empty.

    Nothing is written unless every member is a regular file with a plain relative name
    below ``task/`` or ``kit/``. The caller compares ``digest_of`` with what was asked for.

    Raises:
        TaskFolderError: the archive is not one that ``pack`` makes.
        OSError: the disk refused.
    """
    entries = _members(data)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise TaskFolderError(f"{target}: an archive is unpacked into an empty folder only")
    for entry in entries:
        path = target / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        mode = 0o755 if entry.executable else 0o644
        with open(os.open(path, flags, mode), "wb") as stream:
            stream.write(entry.data)
            # The umask took bits away; containers run as any user.
            os.fchmod(stream.fileno(), mode)
    for folder in [path for path in target.rglob("*") if path.is_dir()]:
        folder.chmod(0o755)


def _files(base: Path) -> Iterator[Path]:
    """The regular files below a folder; anything else but folders is refused."""
    try:
        with os.scandir(base) as scan:
            children = sorted(scan, key=lambda child: child.name)
    except OSError as error:
        raise TaskFolderError(f"{base}: cannot be listed: {error.strerror}") from error
    for child in children:
        path = Path(child.path)
        if child.is_symlink():
            raise TaskFolderError(f"{path}: a link; a task folder holds regular files only")
        if child.is_dir(follow_symlinks=False):
            if child.name != _LEFT_OUT:
                yield from _files(path)
        elif child.is_file(follow_symlinks=False):
            yield path
        else:
            raise TaskFolderError(f"{path}: a special file; a task folder holds regular files only")


def _read(path: Path, name: str, limit: int) -> FolderEntry:
    try:
        # Non-blocking, so that a pipe put here after the listing cannot hold us up.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise TaskFolderError(f"{path}: not a regular file any more")
            data = stream.read(limit + 1)
    except OSError as error:
        raise TaskFolderError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise TaskFolderError(f"{path}: task folder and kit exceed {MAX_BYTES} bytes")
    return FolderEntry(name, bool(facts.st_mode & stat.S_IXUSR), data)


def _members(data: bytes) -> tuple[FolderEntry, ...]:
    """The archive's files, all checked."""
    entries: dict[str, FolderEntry] = {}
    left = MAX_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if not member.isreg() or member.issparse():
                    raise TaskFolderError(f"archive: {member.name!r} is not a regular file")
                _check_name(member.name)
                left -= member.size
                if member.size < 0 or left < 0 or len(entries) >= MAX_FILES:
                    raise TaskFolderError("archive: too many files or bytes")
                if member.name in entries:
                    raise TaskFolderError(f"archive: {member.name!r} stands twice")
                stream = archive.extractfile(member)
                content = b"" if stream is None else stream.read()
                if len(content) != member.size:
                    raise TaskFolderError(f"archive: {member.name!r} is cut short")
                executable = bool(member.mode & stat.S_IXUSR)
                entries[member.name] = FolderEntry(member.name, executable, content)
    except (tarfile.TarError, OSError, ValueError, OverflowError, EOFError) as error:
        if isinstance(error, TaskFolderError):
            raise
        raise TaskFolderError(f"archive: not a tar that can be read: {error}") from error
    _refuse_nested(entries)
    return tuple(entries.values())


def _refuse_nested(entries: dict[str, FolderEntry]) -> None:
    for name in entries:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            if "/".join(parts[:depth]) in entries:
                raise TaskFolderError(f"archive: {name!r} lies below a file")


def _check_name(name: str) -> None:
    parts = name.split("/")
    try:
        length = len(name.encode())
    except UnicodeEncodeError as error:
        raise TaskFolderError(f"{name!r}: a file name that is not UTF-8") from error
    if length > MAX_NAME_BYTES or "\0" in name or "\n" in name:
        raise TaskFolderError(f"{name[:80]!r}: a file name too long, or with a line break")
    if parts[0] not in _ROOTS or len(parts) < 2 or any(part in ("", ".", "..") for part in parts):
        raise TaskFolderError(f"{name!r}: not a plain name below task/ or kit/")
