"""The tasks of a sweep: found in the data set, chosen by globs and layer, read whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from scheduler.manifest.faults import (
    FaultList,
    ManifestError,
    ManifestFault,
    Place,
    nearest_name,
)
from scheduler.manifest.files import nearest_path
from scheduler.manifest.roots import KIT_NAME
from scheduler.manifest.sweep import LoadedSweep
from scheduler.manifest.task import CONFIG_NAME, REQUIRED_FILES, load_task, load_task_config
from workers.contract.task import Task, TaskConfig

_NARROWING: tuple[Place, ...] = (("tasks", "include"), ("tasks", "exclude"), ("layer",))


@dataclass(frozen=True)
class ChosenTask:
    """A task of the sweep and where its bytes are."""

    task: Task
    folder: Path
    kit: Path

    @property
    def names(self) -> tuple[str, ...]:
        """All that a glob may match."""
        return (self.task.name, self.task.bare_name, self.folder.name)

    @property
    def has_solution(self) -> bool:
        """Whether the task ships what an oracle plays."""
        return os.path.isfile(self.folder / "solution" / "solve.sh")


@dataclass(frozen=True)
class _Candidate:
    """A task folder before anything but its ``task.toml`` was read."""

    folder: Path
    config: TaskConfig | None
    """Null: its ``task.toml`` has faults."""

    @property
    def names(self) -> tuple[str, ...]:
        """All that a glob may match."""
        if self.config is None:
            return (self.folder.name,)
        name = self.config.task.name
        return (name, name.rpartition("/")[2], self.folder.name)

    def matches(self, pattern: str) -> bool:
        """Whether the glob matches."""
        return _matches(self.names, pattern)

    @property
    def label(self) -> str:
        """The bare name, for messages."""
        return self.names[-2] if len(self.names) > 1 else self.names[0]


def choose_tasks(sweep: LoadedSweep) -> tuple[tuple[ChosenTask, ...], tuple[str, ...]]:
    """The tasks that the sweep asks for, sorted by name, and warnings.

    Raises:
        ManifestError: a glob or the layer matches nothing, or a chosen task has faults.
    """
    candidates = _candidates(sweep)
    faults = FaultList()
    for place, pattern in _idle_globs(sweep, candidates, "include"):
        message = f"no task matches {pattern!r}; there are {_listed(candidates)}"
        names = [candidate.label for candidate in candidates]
        faults.add(sweep.document.fault(place, message, nearest_name(pattern, names)))
    warnings = tuple(
        f"tasks.exclude: no task matches {pattern!r}"
        for _, pattern in _idle_globs(sweep, candidates, "exclude")
    )
    chosen: list[ChosenTask] = []
    kit = sweep.manifests / KIT_NAME
    for candidate in _of_layer(sweep, _of_globs(sweep, candidates, faults), faults):
        with faults.gathering():
            task = load_task(candidate.folder, kit)
            chosen.append(ChosenTask(task, candidate.folder, kit))
    for fault in _doubles(chosen):
        faults.add(fault)
    faults.settle()
    return tuple(sorted(chosen, key=lambda each: each.task.name)), warnings


def narrowed(
    sweep: LoadedSweep,
    tasks: Sequence[ChosenTask],
    place: Place,
    include: Sequence[str],
    exclude: Sequence[str],
) -> tuple[ChosenTask, ...]:
    """Of the sweep's tasks those that a condition's or the canaries' own globs leave.

    Where the command line has narrowed the sweep, as one does to try a few tasks, nothing is
    refused, and nothing may be left.

    Args:
        sweep: for faults.
        tasks: the sweep's.
        place: where ``include`` and ``exclude`` stand.
        include: globs; empty: all.
        exclude: globs.

    Raises:
        ManifestError: a glob matches no task of the sweep, or no task is left.
    """
    faults = FaultList()
    listed = ", ".join(each.task.bare_name for each in tasks[:20])
    for field, patterns in (("include", include), ("exclude", exclude)):
        for index, pattern in enumerate(patterns):
            if not any(_matches(each.names, pattern) for each in tasks):
                message = f"no task of the sweep matches {pattern!r}; it has {listed}"
                near = nearest_name(pattern, [each.task.bare_name for each in tasks])
                faults.add(sweep.document.fault((*place, field, index), message, near))
    tried = any(place in sweep.document.flags for place in _NARROWING)
    if not tried:
        faults.settle()
    kept = tuple(
        each
        for each in tasks
        if (not include or any(_matches(each.names, pattern) for pattern in include))
        and not any(_matches(each.names, pattern) for pattern in exclude)
    )
    if not kept and not tried:
        raise ManifestError([sweep.document.fault(place, "its globs leave no task of the sweep")])
    return kept


def _matches(names: Sequence[str], pattern: str) -> bool:
    """Whether a glob matches: with a ``/`` the whole name, else one of the others."""
    whole = "/" in pattern
    return any(fnmatchcase(name, pattern) for name in names if ("/" in name) is whole)


def _candidates(sweep: LoadedSweep) -> tuple[_Candidate, ...]:
    """Every task folder of the data set, or the one task that the path names."""
    path = sweep.tasks_path
    place: Place = ("tasks", "path")
    if not os.path.isdir(path):
        nearest = nearest_path(path)
        raise ManifestError([sweep.document.fault(place, f"there is no folder {path}", nearest)])
    if os.path.lexists(path / CONFIG_NAME):
        folders = [path]
    else:
        folders = sorted(filter(_looks_like_task, _children(sweep, path)))
    if not folders:
        message = f"{path} is no task and has no tasks: no folder with a {CONFIG_NAME} is in it"
        raise ManifestError([sweep.document.fault(place, message)])
    return tuple(_Candidate(folder, _config_or_none(folder)) for folder in folders)


def _children(sweep: LoadedSweep, path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError as error:
        message = f"{path} cannot be listed: {error.strerror}"
        raise ManifestError([sweep.document.fault(("tasks", "path"), message)]) from error


def _looks_like_task(folder: Path) -> bool:
    """Whether a folder is meant as a task: one file of a task is there, be it not all."""
    return not folder.name.startswith(".") and any(
        (folder / name).exists() for name in REQUIRED_FILES
    )


def _config_or_none(folder: Path) -> TaskConfig | None:
    try:
        return load_task_config(folder)
    except ManifestError:
        # Told again, in full, if the folder is chosen; another's fault stops nobody.
        return None


def _idle_globs(
    sweep: LoadedSweep, candidates: tuple[_Candidate, ...], field: str
) -> list[tuple[Place, str]]:
    patterns = sweep.file.tasks.include if field == "include" else sweep.file.tasks.exclude
    return [
        (("tasks", field, index), pattern)
        for index, pattern in enumerate(patterns)
        if not any(candidate.matches(pattern) for candidate in candidates)
    ]


def _of_globs(
    sweep: LoadedSweep, candidates: tuple[_Candidate, ...], faults: FaultList
) -> tuple[_Candidate, ...]:
    include, exclude = sweep.file.tasks.include, sweep.file.tasks.exclude
    kept = tuple(
        candidate
        for candidate in candidates
        if (not include or any(candidate.matches(pattern) for pattern in include))
        and not any(candidate.matches(pattern) for pattern in exclude)
    )
    if not kept and not faults.faults:
        message = f"no task is left; there are {_listed(candidates)}"
        faults.add(sweep.document.fault(("tasks", "exclude"), message))
    return kept


def _of_layer(
    sweep: LoadedSweep, candidates: tuple[_Candidate, ...], faults: FaultList
) -> tuple[_Candidate, ...]:
    """Those of the sweep's layer, and those whose layer cannot be read."""
    layer = sweep.file.layer
    if layer is None:
        return candidates
    kept = tuple(
        candidate
        for candidate in candidates
        if candidate.config is None or candidate.config.metadata.evaluation_layer == layer
    )
    if candidates and not kept:
        message = f"no task has the layer {layer!r}; there are {_listed(candidates)}"
        faults.add(sweep.document.fault(("layer",), message))
    return kept


def _listed(candidates: tuple[_Candidate, ...]) -> str:
    """Task names with their layers, a few of many."""
    shown = [
        f"{candidate.label} ({candidate.config.metadata.evaluation_layer})"
        if candidate.config is not None
        else f"{candidate.label} (unreadable)"
        for candidate in candidates
    ]
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(shown[:20]) + more


def _doubles(chosen: list[ChosenTask]) -> list[ManifestFault]:
    first: dict[str, Path] = {}
    faults = []
    for each in chosen:
        other = first.setdefault(each.task.name, each.folder)
        if other is not each.folder:
            message = f"{other} has the same name, {each.task.name!r}"
            file = str(each.folder / CONFIG_NAME)
            faults.append(ManifestFault(file, None, "task.name", message))
    return faults
