"""Where data that belongs together lies: the manifests folder, and the shipped endpoints."""

from __future__ import annotations

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
        if (folder / KIT_NAME).is_dir():
            return folder
    return Path("manifests")


def shipped_endpoints(manifests: Path) -> Path:
    """The folder of the endpoint files that come with a manifests folder."""
    return manifests.parent / "deploy" / "endpoints"
