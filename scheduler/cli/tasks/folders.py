"""The task folders of a data set, as they are named on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from scheduler.cli.exits import UsageFault
from scheduler.manifest.faults import nearest_name
from scheduler.manifest.roots import KIT_NAME, find_manifests
from scheduler.manifest.task import CONFIG_NAME, load_task
from workers.contract.task import Task

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT = Path("manifests") / "tasks"


def path_option(function: F) -> F:
    """``--path``: a data set."""
    return click.option(
        "--path",
        type=click.Path(path_type=Path),
        help="Folder of tasks, or one task's; otherwise manifests/tasks.",
    )(function)


@dataclass(frozen=True)
class Dataset:
    """A folder of tasks and what belongs to it."""

    folder: Path
    manifests: Path
    """Where the verifier kit is."""
    tasks: tuple[Path, ...]
    """Every task's folder by name; the one that was named, if one was."""

    @property
    def kit(self) -> Path:
        """The verifier kit."""
        return self.manifests / KIT_NAME

    def chosen(self, names: Sequence[str]) -> tuple[Path, ...]:
        """The folders of some tasks.

        Raises:
            UsageFault: there is no such task.
        """
        known = {folder.name: folder for folder in self.tasks}
        for name in names:
            if name not in known:
                nearest = nearest_name(name, known)
                hint = "" if nearest is None else f" (did you mean {nearest!r}?)"
                listed = ", ".join(known)
                raise UsageFault(f"{self.folder} has no task {name!r}{hint}; there are {listed}")
        return tuple(known[name] for name in dict.fromkeys(names))

    def load(self, folder: Path) -> Task:
        """A task, checked whole.

        Raises:
            ManifestError: it has faults.
        """
        return load_task(folder, self.kit)


def open_dataset(path: Path | None) -> Dataset:
    """The data set at a path, or the one that a single task is in.

    Raises:
        UsageFault: there is no such folder, or no task in it.
    """
    given = path or DEFAULT
    if not given.is_dir():
        raise UsageFault(f"there is no folder {given}: name the folder of tasks with --path")
    manifests = find_manifests(given)
    if (given / CONFIG_NAME).is_file():
        return Dataset(given.absolute().parent, manifests, (given,))
    folders = sorted(child for child in given.iterdir() if (child / CONFIG_NAME).is_file())
    if not folders:
        raise UsageFault(f"{given} has no tasks: no folder with a {CONFIG_NAME} is in it")
    return Dataset(given, manifests, tuple(folders))
