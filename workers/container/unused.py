"""Images of tasks and bundles of the agent's files that no sweep has used for long.

In use is what a living process of this machine holds (``locks.Holds``), what a container is made
of, and what was used in the last days. When an image was last used is what the engine says of
its tag, which each user sets anew; of a bundle it is its folder's time. An image is removed by
the tag that it was built for, never by force: a tag that somebody else gave it keeps it, and so
does a container.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from workers.container import ownership
from workers.container.api import ConflictError, DockerApi, MissingError
from workers.container.calls import Deadline
from workers.container.locks import unheld
from workers.container.removal import remove_tree

DAYS = 7.0
"""After which what nobody uses has expired."""
AGENT = "agent"
"""The folder of a workspace that holds the bundles."""
BASE = "apiary.from"
"""Label: the image that an image was built on."""

_DAY_S = 86_400.0
_BUNDLE = re.compile(r"[0-9a-f]{64}(\.new)?")


def image_hold(tag: str) -> str:
    """The name under which a user holds an image."""
    return f"image {tag} in use"


def bundle_hold(folder: str) -> str:
    """The name under which a user holds a bundle."""
    return f"agent bundle {folder} in use"


def find_images(
    api: DockerApi, directory: Path, days: float, now_s: float, deadline: Deadline
) -> Iterator[tuple[str, str]]:
    """Tags of ours that nobody has used for so many days, and why they may go."""
    listed = api.images(ownership.PROOF, deadline.left_s())
    used = {item["ImageID"] for item in api.listing("containers", [], deadline.left_s())}
    for image in listed:
        labels = image["Labels"] or {}
        tag = labels.get(ownership.IMAGE, "")
        if not ownership.proves(tag, labels) or tag not in (image["RepoTags"] or ()):
            continue
        if image["Id"] in used:
            continue
        try:
            age_s = now_s - last_use(api.image(tag, deadline.left_s()))
        except MissingError:
            continue
        with unheld(directory, image_hold(tag)) as free:
            if free and age_s > days * _DAY_S:
                yield tag, f"no sweep has used it for {_days(age_s)}"


def remove_image(api: DockerApi, directory: Path, tag: str, deadline: Deadline) -> bool:
    """Removes a tag of ours, with the image if it has no other.

    Returns:
        Whether it did: not if somebody uses it.
    """
    with unheld(directory, image_hold(tag)) as free:
        if not free:
            return False
        labels = api.image(tag, deadline.left_s())["Config"].get("Labels") or {}
        try:
            api.remove_image(tag, _may_prune(api, labels, deadline), deadline.left_s())
        except ConflictError:  # a container of it was made a moment ago
            return False
        return True


def _may_prune(api: DockerApi, labels: dict[str, str], deadline: Deadline) -> bool:
    """Whether the layers below may go too: not if a base image without a name is among them."""
    base = labels.get(BASE, "")
    if not base:
        return True
    try:
        told = api.image(base, deadline.left_s())
    except MissingError:
        return True
    return bool(told["RepoTags"] or told["RepoDigests"])


def last_use(image: Any) -> float:
    """When an image was last used, Unix seconds: its tag's time, else when it was built."""
    tagged = str((image.get("Metadata") or {}).get("LastTagTime") or "")
    return max(_seconds(tagged), _seconds(str(image["Created"])))


def find_bundles(
    api: DockerApi, workspace: Path | None, days: float, now_s: float, deadline: Deadline
) -> Iterator[tuple[Path, str]]:
    """Bundles of a workspace that nobody has used for so many days, and why they may go."""
    if workspace is None or not (workspace / AGENT).is_dir():
        return
    mounted = [
        str(mount.get("Source", ""))
        for item in api.listing("containers", [], deadline.left_s())
        for mount in item["Mounts"] or ()
    ]
    for folder in sorted((workspace / AGENT).iterdir()):
        if not _BUNDLE.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
            continue
        if any(Path(source).is_relative_to(folder) for source in mounted if source):
            continue
        age_s = now_s - folder.stat().st_mtime
        with unheld(workspace, bundle_hold(folder.name)) as free:
            if free and age_s > days * _DAY_S:
                yield folder, f"no sweep has used it for {_days(age_s)}"


def remove_bundle(folder: Path) -> bool:
    """Removes a bundle.

    Returns:
        Whether it did: not if somebody uses it.

    Raises:
        OSError: something in it cannot be removed.
    """
    with unheld(folder.parent.parent, bundle_hold(folder.name)) as free:
        if not free:
            return False
        # Out of the way first: who finds the folder finds it whole.
        away = folder.with_name(f".{folder.name}.{os.getpid()}.gone")
        folder.rename(away)
        remove_tree(away)
        return True


def _days(seconds: float) -> str:
    return f"{seconds / _DAY_S:.1f} days"


def _seconds(stamp: str) -> float:
    """A time of the engine's; 0 if it says none (the year 1)."""
    try:
        return max(0.0, datetime.fromisoformat(stamp[:19] + "+00:00").timestamp())
    except ValueError:
        return 0.0
