"""Takes one regular file out of a tar stream that nobody vouches for."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.container.calls import Deadline
from workers.container.interface import ContainerError

_OVERHEAD = 64 * 1024
"""Bytes of a tar beside its one file: headers, padding, the end."""
_GO_NOT_REGULAR = (1 << 31) | (1 << 27) | (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19)
"""Bits of Go's ``fs.FileMode``: directory, symlink, device, pipe, socket, character device,
irregular."""


def check_told(what: str, told: Any, max_bytes: int) -> None:
    """Refuses early by what the engine said of the path (``X-Docker-Container-Path-Stat``).

    Raises:
        ContainerError: it is no regular file, or larger than ``max_bytes``.
    """
    if int(told["mode"]) & _GO_NOT_REGULAR or told.get("linkTarget"):
        raise ContainerError(f"{what}: it is no regular file")
    if int(told["size"]) > max_bytes:
        raise ContainerError(f"{what}: it has {told['size']} bytes, at most {max_bytes} may be")


def write_single(deadline: Deadline, chunks: Iterator[bytes], target: Path, max_bytes: int) -> None:
    """Writes the only member of a tar to ``target``, whole or not at all.

    The member's own name and mode are ignored; the file gets mode 0644.

    Raises:
        ContainerError: not exactly one member, no regular file, too large, or late.
    """
    what = deadline.what
    stream: Any = _Bounded(deadline, chunks, max_bytes + _OVERHEAD)
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            member = archive.next()
            if member is None or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                raise ContainerError(f"{what}: it is no regular file")
            if member.size > max_bytes:
                raise ContainerError(
                    f"{what}: it has {member.size} bytes, at most {max_bytes} may be"
                )
            content = archive.extractfile(member)
            assert content is not None  # a regular member has content
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with os.fdopen(descriptor, "wb") as out:
                shutil.copyfileobj(content, out)
                os.fchmod(out.fileno(), stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH)
            if archive.next() is not None:
                raise ContainerError(f"{what}: it is more than one file")
        os.replace(new, target)
    except (tarfile.TarError, EOFError) as error:
        raise ContainerError(f"{what}: the engine's tar is broken: {error}") from error
    finally:
        new.unlink(missing_ok=True)


class _Bounded:
    """A readable over chunks that refuses to give more than so many bytes."""

    def __init__(self, deadline: Deadline, chunks: Iterator[bytes], limit: int) -> None:
        self._deadline = deadline
        self._chunks = chunks
        self._left = limit
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Exactly ``size`` bytes, fewer only at the end."""
        parts = [self._rest]
        have = len(self._rest)
        while have < size:
            self._deadline.left_s()
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._left -= len(chunk)
            if self._left < 0:
                raise ContainerError(f"{self._deadline.what}: it is larger than allowed")
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]
