"""Opening the file that an upload reads: regular, and no link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from workers.storage.interface import StoreError


def open_regular(key: str, path: Path) -> BinaryIO:
    """Opens a regular file for reading; the caller closes it.

    A link or a pipe in its place is refused, and opening a pipe does not hang: what is
    uploaded may have been written by a container.

    Raises:
        StoreError: there is no regular file at the path, or it may not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(
            f"put_file {key!r}: cannot open {path.name!r}: {error.strerror}"
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"put_file {key!r}: {path.name!r} is not a regular file")
    return os.fdopen(descriptor, "rb")
