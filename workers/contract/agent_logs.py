"""How a try keeps what its agents wrote: a file each, or one archive where these are many.

A store is paid by the object, and an attempt is to cost twelve at most: evidence, its timeline, the
ledger, reward and details, the record and the commit are seven, a task's input and what the tests
printed two more.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterable, Mapping

from workers.contract.base import FormatError

FOLDER = "logs/agents/"
ARCHIVE = "logs/agents.zip"
MOST_FILES = 3
"""Kept as files, as many as an agent alone leaves; more go into the archive."""
_BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What ``zipfile`` raises over bytes that are no archive, or one that was changed."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that the format knows: the same logs give the same bytes."""


def pack(logs: Mapping[str, bytes]) -> bytes:
    """The archive of logs, a member each, by the name of its file.

    Nothing is compressed, so that a search for secrets still sees what is inside (APPNOTE.TXT of
    the ZIP format, 4.4.5: method 0).
    """
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(logs):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), logs[name])
    return data.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The logs of an archive.

    Raises:
        FormatError: it is no archive that ``pack`` makes; what a store holds may be forged.
    """
    logs = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                name = member.filename
                if name in logs or not name or "/" in name or name in (".", ".."):
                    raise FormatError(f"{ARCHIVE}: {name!r} is no name of a log")
                if member.compress_type != zipfile.ZIP_STORED or member.file_size > len(data):
                    raise FormatError(f"{ARCHIVE}: {name} is not stored as it is")
                logs[name] = archive.read(member)
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(f"{ARCHIVE}: no archive of logs: {error}") from error
    return logs


def kept_of(names: Iterable[str], files: Iterable[str]) -> tuple[str, ...]:
    """Where what a try's names point at is found: a file that it kept, or the archive.

    What was not kept falls away: a log in which nobody wrote is no file.
    """
    there = set(files)
    found = (
        ARCHIVE if name.startswith(FOLDER) and ARCHIVE in there and name not in there else name
        for name in names
    )
    return tuple(dict.fromkeys(name for name in found if name in there))
