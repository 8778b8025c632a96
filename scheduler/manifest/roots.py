"""Where data that belongs together lies: the manifests folder, and the shipped endpoints."""

from __future__ import annotations

import os
from pathlib import Path

KIT_NAME = "verifier_kit"
"""The folder by which a manifests folder is known."""


def find_manifests(start: Path) -> Path:
    """The manifests folder that a file or folder belongs to.

    The nearest folder above it that has a verifier kit; else ``manifests`` in the working
    directory, since an installed package holds no data.
    """
    resolved = start.resolve()
    for folder in (resolved, *resolved.parents):
        if os.path.isdir(folder / KIT_NAME):
            return _from_here(folder)
    return Path("manifests")


def _from_here(folder: Path) -> Path:
    """The folder as short as it can be written: it stands in what people read."""
    here = Path.cwd()
    # Not the working directory itself: ``.`` has no parent to look for endpoints in.
    return folder.relative_to(here) if here in folder.parents else folder


def shipped_endpoints(manifests: Path) -> Path:
    """The folder of the endpoint files that come with a manifests folder."""
    return manifests.parent / "deploy" / "endpoints"
