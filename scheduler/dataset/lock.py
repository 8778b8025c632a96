"""``tasks.lock.yaml``: the digest of every task of a data set, pinned together with the kit.

The file stands beside the data set's folder and is named for it. A task that changed has another
digest, and so another identity in every trend; the lock makes that a decision of somebody.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scheduler.manifest.check import check
from scheduler.manifest.files import read_document
from workers.contract.base import Strict
from workers.contract.task_folder import digest_of

_HEAD = """\
# The digest of every task's folder together with the verifier kit, written by `apiary tasks lock`.
# A task with another digest is another task: it begins a new series in every trend.
schema_version: 1
"""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class TaskLock(Strict):
    """A lock file."""

    schema_version: Literal[1] = 1
    verifier_kit: Digest
    """Of the kit alone: tells a change of the kit from one of a task."""
    tasks: dict[str, Digest]
    """By the folder's name."""


def lock_path(dataset: Path) -> Path:
    """Where the lock of a data set's folder is."""
    whole = dataset.absolute()
    return dataset.parent / f"{whole.name}.lock.yaml"


def read_lock(dataset: Path) -> TaskLock | None:
    """The lock of a data set; null where it has none.

    Raises:
        ManifestError: it is not of the format.
    """
    path = lock_path(dataset)
    return check(TaskLock, read_document(path)) if path.is_file() else None


def make_lock(digests: Mapping[str, str], kit: Path) -> TaskLock:
    """The lock of tasks as they stand, by the folder's name.

    Raises:
        TaskFolderError: the kit cannot be read.
    """
    return TaskLock(verifier_kit=digest_of(kit, None), tasks=dict(sorted(digests.items())))


def write_lock(dataset: Path, lock: TaskLock) -> Path:
    """Writes the lock of a data set.

    Raises:
        OSError: the disk refused.
    """
    # In quotes, since a digest may look like a number and a name like anything.
    lines = [f'verifier_kit: "{lock.verifier_kit}"', "tasks:" if lock.tasks else "tasks: {}"]
    lines += [f'  "{name}": "{digest}"' for name, digest in lock.tasks.items()]
    path = lock_path(dataset)
    path.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def digest_fault(lock: TaskLock | None, name: str, digest: str, kit_digest: str) -> str:
    """Why a task is not the one that the lock pins; empty: it is, or nothing is pinned.

    Args:
        lock: the data set's.
        name: of the task's folder.
        digest: of the task as it stands.
        kit_digest: of the kit as it stands.
    """
    if lock is None or lock.tasks.get(name) == digest:
        return ""
    if name not in lock.tasks:
        return f"the lock has no {name}: run `apiary tasks lock`"
    changed = "the task" if lock.verifier_kit == kit_digest else "the verifier kit"
    return f"{changed} changed: {digest[:12]}, pinned is {lock.tasks[name][:12]}"


def changes(before: TaskLock | None, after: TaskLock) -> list[str]:
    """What one lock says otherwise than another, one line a task."""
    old = {} if before is None else before.tasks
    lines = []
    for name in sorted({*old, *after.tasks}):
        if name not in after.tasks:
            lines.append(f"{name}: gone")
        elif name not in old:
            lines.append(f"{name}: new, {after.tasks[name][:12]}")
        elif old[name] != after.tasks[name]:
            lines.append(f"{name}: {old[name][:12]} → {after.tasks[name][:12]}")
    return lines
