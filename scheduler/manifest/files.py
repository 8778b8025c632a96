"""Files of people's making: bounded, regular, UTF-8, or a fault that names them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from scheduler.manifest.document import Document
from scheduler.manifest.faults import ManifestError, ManifestFault, nearest_name
from scheduler.manifest.json_marks import read_json
from scheduler.manifest.toml_marks import read_toml
from scheduler.manifest.yaml_marks import read_yaml

MAX_FILE_BYTES = 1024 * 1024
"""Of a manifest, an instruction or a prompt."""

_READERS: dict[str, Callable[[str, str], Document]] = {".json": read_json, ".toml": read_toml}


def read_document(path: Path) -> Document:
    """A manifest file; the name's ending says how to read it, YAML where it says nothing.

    Raises:
        ManifestError: the file is missing, not a regular UTF-8 file, or not well formed.
    """
    text = read_text(path)
    return _READERS.get(path.suffix.lower(), read_yaml)(text.removeprefix("\ufeff"), str(path))


def read_text(path: Path) -> str:
    """A file's text, line ends as they are.

    Raises:
        ManifestError: the file is missing, not a regular file, too large, or not UTF-8.
    """
    data = read_bytes(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}"
        raise ManifestError([ManifestFault(str(path), line, "", message)]) from error


def read_bytes(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        ManifestError: the file is missing, not a regular file, or too large.
    """
    try:
        facts = path.stat()
        # Before opening: a pipe would hold the reader up for ever.
        if not stat.S_ISREG(facts.st_mode):
            kind = "a folder" if stat.S_ISDIR(facts.st_mode) else "a special file"
            raise _error(path, f"expected a file, found {kind}")
        if facts.st_size > MAX_FILE_BYTES:
            raise _error(path, f"larger than {MAX_FILE_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise _error(path, "there is no such file", nearest_path(path)) from error
        raise _error(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, ManifestError):
            raise
        raise _error(path, "not a file name") from error


def nearest_path(path: Path) -> str | None:
    """The path beside a missing one whose name is nearest to it, if any is near."""
    try:
        names = sorted(os.listdir(path.parent))
    except (OSError, ValueError):
        return None
    nearest = nearest_name(path.name, names)
    return None if nearest is None else str(path.parent / nearest)


def _error(path: Path, message: str, nearest: str | None = None) -> ManifestError:
    return ManifestError([ManifestFault(str(path), None, "", message, nearest)])
