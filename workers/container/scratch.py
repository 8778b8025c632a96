"""Folders that live no longer than the process that made them, and what dead ones left.

A folder with an owner holds a file that names the process (as a container's label does). Whoever
starts next on the machine, and ``apiary reap``, removes those whose owner is proved to be gone.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from workers.container import ownership
from workers.container.removal import remove_tree

OWNER_FILE = "owner"
PREFIX = "apiary-"
TRIALS = "trials"
"""The folder of a node's workspace that holds those of its trials."""
_LONGEST_OWNER = 200


@contextlib.contextmanager
def scratch_folder(what: str) -> Iterator[Path]:
    """A folder of this process in the system's directory for temporary files.

    Args:
        what: a word for its name, which should be short: sockets are put there, and the path of
            one holds 107 bytes.

    Raises:
        OSError: it cannot be made, or not be removed.
    """
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-"))
    try:
        own(path)
        yield path
    finally:
        remove_tree(path)


def own(folder: Path) -> None:
    """Notes that a folder is this process's and goes with it."""
    (folder / OWNER_FILE).write_text(ownership.this_process())


def disown(folder: Path) -> None:
    """Keeps a folder from ever being removed as abandoned."""
    (folder / OWNER_FILE).unlink(missing_ok=True)


def folders_with_owners(workspace: Path) -> list[Path]:
    """Where to look for abandoned folders: those for temporary files, and a node's trials."""
    temporary = Path(tempfile.gettempdir()).glob(f"{PREFIX}*")
    return [*sorted(temporary), *sorted((workspace / TRIALS).glob("*"))]


def abandoned(folders: Iterable[Path]) -> list[Path]:
    """Those of some folders whose owner is proved to be gone."""
    return [folder for folder in folders if _is_abandoned(folder)]


def remove_abandoned(folders: Iterable[Path]) -> list[Path]:
    """Removes those of some folders whose owner is gone; blocks.

    Returns:
        What was removed. What resists stays, and is tried again by the next who calls.
    """
    removed = []
    for folder in abandoned(folders):
        with contextlib.suppress(OSError):
            remove_tree(folder)
            removed.append(folder)
    return removed


def _is_abandoned(folder: Path) -> bool:
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        with (folder / OWNER_FILE).open("rb") as stream:
            owner = stream.read(_LONGEST_OWNER).decode("ascii", "replace")
    except OSError:
        return False
    return ownership.is_gone(owner)
