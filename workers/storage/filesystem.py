"""A store in a directory tree: ``file:///path``.

A key's parts are folders and a file name. Every folder on the way is opened by its parent's
descriptor without following links, so nothing that lies under the root leads out of it.
An object appears whole or not at all: it is written beside its place under a name that no
key has, flushed to disk, then linked (``create``: fails if the name exists, which is the
lock) or renamed (``put``) into it. One limit that S3 does not have: a key cannot be both an
object and a folder of others.

Durability: an object's bytes are on disk when a call returns. A ``create`` also waits for the
names on the way to it; a ``put`` leaves its name to the file system's journal, which has it on
disk at the latest with the next ``create``. So after a power cut no commit is there without
what was put before it.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from workers.storage.interface import MissingKeyError, StoreError
from workers.storage.keys import PARTIAL, check_folder, check_key, check_prefix, is_key
from workers.storage.source import open_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStore:
    """Objects as regular files under a root folder, which the first write makes."""

    def __init__(self, root: Path, url: str) -> None:
        self.url = url
        self._root = root

    def __repr__(self) -> str:
        return f"FileStore({self.url!r})"

    def create(self, key: str, data: bytes) -> bool:
        """Writes an object only if there is none; on disk when it returns True.

        Raises:
            StoreError: undecided; the object may have been written.
        """
        *folders, name = check_key(key)
        with _faults("create", key), self._folder(folders, make=True, sync=True) as folder:
            partial = _write(folder, io.BytesIO(data))
            try:
                os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError:
                if not _is_regular(folder, name):
                    raise
                return False
            finally:
                os.unlink(partial, dir_fd=folder)
            os.fsync(folder)
        return True

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, whole or not at all; the last writer wins."""
        self._put("put", key, io.BytesIO(data))

    def put_file(self, key: str, path: Path) -> None:
        """Like ``put``, from a regular file, without holding it in memory."""
        check_key(key)
        with open_regular(key, path) as source:
            self._put("put_file", key, source)

    def get(self, key: str) -> bytes:
        """An object's bytes.

        Raises:
            MissingKeyError: there is none.
        """
        *folders, name = check_key(key)
        with _faults("get", key), self._folder(folders) as folder:
            if not _is_regular(folder, name):
                raise FileNotFoundError(errno.ENOENT, "it is not a regular file")
            with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as stream:
                return stream.read()

    def exists(self, key: str) -> bool:
        """Whether there is an object at the key."""
        *folders, name = check_key(key)
        try:
            with _faults("exists", key), self._folder(folders) as folder:
                return _is_regular(folder, name)
        except MissingKeyError:
            return False

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys that begin with the prefix, sorted.

        Folders are read one at a time while the caller goes on; what is not a key of this
        store (a link, a partial file, a foreign name) is not listed.
        """
        folders, beginning = check_prefix(prefix)
        return self._walk(folders, beginning)

    def children(self, folder: str) -> list[str]:
        """The names of the folders right below a folder that hold an object, sorted."""
        parts = check_folder(folder)
        return sorted(
            name
            for name, is_folder in self._entries(parts, "")
            if is_folder and next(self._walk((*parts, name), ""), None) is not None
        )

    def delete(self, key: str) -> None:
        """Removes an object; none there is no error."""
        *folders, name = check_key(key)
        try:
            with _faults("delete", key), self._folder(folders) as folder:
                if _is_regular(folder, name):
                    os.unlink(name, dir_fd=folder)
        except MissingKeyError:
            return

    def clock(self) -> float | None:
        """None: files are dated by the clock of whoever writes them, or by a server unasked."""
        return None

    def _put(self, operation: str, key: str, source: BinaryIO) -> None:
        *folders, name = check_key(key)
        with _faults(operation, key), self._folder(folders, make=True) as folder:
            partial = _write(folder, source)
            try:
                os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(partial, dir_fd=folder)
                raise

    def _walk(self, folders: tuple[str, ...], beginning: str) -> Iterator[str]:
        for name, is_folder in self._entries(folders, beginning):
            if is_folder:
                yield from self._walk((*folders, name), "")
            elif is_key(key := "/".join((*folders, name))):
                yield key

    def _entries(self, folders: tuple[str, ...], beginning: str) -> list[tuple[str, bool]]:
        """Files and folders of one folder, in the order of the keys they stand for."""
        place = "/".join(folders)
        try:
            with (
                _faults("keys", place),
                self._folder(folders) as folder,
                os.scandir(folder) as found,
            ):
                entries = [
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in found
                    if entry.name.startswith(beginning)
                    and not entry.name.startswith(PARTIAL)
                    and _is_listed(entry)
                ]
        except MissingKeyError:
            return []
        # "a-b" sorts before "a/c", so a folder is compared with its slash.
        return sorted(entries, key=lambda entry: entry[0] + "/" if entry[1] else entry[0])

    @contextmanager
    def _folder(
        self, parts: list[str] | tuple[str, ...], *, make: bool = False, sync: bool = False
    ) -> Iterator[int]:
        """A descriptor of the folder at the parts, made on the way if asked, durably with sync."""
        if make:
            self._root.mkdir(parents=True, exist_ok=True)
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                below = _enter(folder, part, make=make, sync=sync)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _is_listed(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)


def _enter(folder: int, name: str, *, make: bool, sync: bool) -> int:
    """Opens a folder's subfolder; no link is followed."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        pass  # Another writer made it between the two calls.
    else:
        if sync:
            os.fsync(folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _write(folder: int, source: BinaryIO) -> str:
    """Writes a partial file to disk; the name it has in the folder."""
    name = f"{PARTIAL}{secrets.token_hex(8)}"
    descriptor = os.open(name, _WRITE, 0o644, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target, 1024 * 1024)
            target.flush()
            os.fsync(target.fileno())
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    return name


def _is_regular(folder: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


@contextmanager
def _faults(operation: str, key: str) -> Iterator[None]:
    """Turns what the operating system raises into the errors of a store."""
    try:
        yield
    except FileNotFoundError as error:
        if operation in ("create", "put"):
            raise StoreError(
                f"{operation} {key!r}: the folder that should hold it cannot be made"
            ) from error
        raise MissingKeyError(f"{operation} {key!r}: there is no such object") from error
    except NotADirectoryError as error:
        if operation in ("create", "put", "put_file"):
            raise StoreError(
                f"{operation} {key!r}: a part of the key is an object or a link, not a folder"
            ) from error
        raise MissingKeyError(f"{operation} {key!r}: there is no such object") from error
    except OSError as error:
        raise StoreError(f"{operation} {key!r}: {error.strerror or error}") from error
