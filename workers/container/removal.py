"""Removes a folder that containers wrote into, whatever they made of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def remove_tree(root: Path) -> None:
    """Removes a folder with all that is in it; gone already is no error. Blocks.

    *Why not by recursion:* a tree may be deeper than a path may be long, than Python recurses,
    and than descriptors are left. So every folder that is found is first moved up into the root;
    then no path is longer than two names. No link is followed. Nobody may write there meanwhile.

    Raises:
        OSError: something in it cannot be removed, for example because it is another user's.
    """
    # Its name must be one that nobody can have taken before.
    prefix = f".removed-{secrets.token_hex(8)}-"
    moved = 0
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        for child in _emptied_of_files(folder):
            target = root / f"{prefix}{moved}"
            with contextlib.suppress(FileNotFoundError):
                child.rename(target)
                moved += 1
                waiting.append(target)
        if folder != root:
            folder.rmdir()
    with contextlib.suppress(FileNotFoundError):
        root.rmdir()


def _emptied_of_files(folder: Path) -> list[Path]:
    """Removes everything in a folder that is no folder, and gives what is one."""
    folders = []
    with contextlib.suppress(FileNotFoundError):
        _open_to_us(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                else:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)
    for each in folders:
        # To be moved, a folder itself must be writable: its entry ".." changes.
        _open_to_us(each)
    return folders


def _open_to_us(folder: Path) -> None:
    with contextlib.suppress(PermissionError, FileNotFoundError):
        folder.chmod(0o700)
