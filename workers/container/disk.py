"""Disk space: what the engine's file system has left, what a folder takes, who can bound it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

MIB = 1024 * 1024
LEAST_BYTES = 4096
"""What an entry of a folder is counted as at least: its name and inode take room too."""


def used_bytes(folder: Path, enough: int) -> int:
    """What a folder with all below it takes of the disk, counted until it is more than enough.

    A container may write there meanwhile: what is gone when it is looked at counts nothing.
    """
    used = 0
    waiting = [os.fspath(folder)]
    while waiting and used <= enough:
        # A folder that is gone, or deeper than a path may be long.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                used += max(found.st_blocks * 512, LEAST_BYTES)
                if used > enough:
                    break
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return used


def free_bytes(root: Path) -> int | None:
    """Free space of the file system under a directory; None if it cannot be seen from here."""
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return None


def short_of_space(root: Path, least_mb: int) -> str:
    """Why a directory's file system has too little room; empty: it has enough, or is not seen."""
    free = free_bytes(root)
    if free is None or free >= least_mb * MIB:
        return ""
    return f"{root} has {free // MIB} MB free, fewer than limits.disk_free_mb {least_mb}"


def writable_layer(told: Any) -> Path | None:
    """Where the host sees what a container has written; None if it does not.

    Args:
        told: the engine's record of the container.
    """
    upper = ((told.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir")
    return Path(upper) if upper and os.access(upper, os.R_OK | os.X_OK) else None


def has_quota(info: Any, mounts: str) -> bool:
    """Whether ``storage-opt size`` works, by Docker's rules for its storage drivers.

    Args:
        info: the engine's facts.
        mounts: this host's mountinfo (proc(5)).
    """
    if info["Driver"] in ("btrfs", "zfs", "devicemapper", "windowsfilter"):
        return True
    if info["Driver"] != "overlay2":
        return False
    backing = dict(tuple(row) for row in info["DriverStatus"] if len(row) == 2)
    if backing.get("Backing Filesystem") != "xfs":
        return False
    options = mount_options(mounts, Path(info["DockerRootDir"]))
    return bool({"prjquota", "pquota"} & set(options.split(",")))


def mount_options(mounts: str, path: Path) -> str:
    """The file system's options of the mount that holds a path, by the longest mount point."""
    best, options = Path("/"), ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split()[4])
        if path.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, options = point, after.split()[2]
    return options


def mount_table() -> str:
    """This process's mount table."""
    return Path("/proc/self/mountinfo").read_text()
