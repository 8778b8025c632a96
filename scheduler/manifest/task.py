"""A task folder to a checked task: ``task.toml``, instruction, fixture, digest."""

from __future__ import annotations

import os
from pathlib import Path

from scheduler.manifest.check import check
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault
from scheduler.manifest.files import read_document, read_text
from workers.contract.task import Fixture, Task, TaskConfig
from workers.contract.task_folder import TaskFolderError, digest_of

CONFIG_NAME = "task.toml"
REQUIRED_FILES = (CONFIG_NAME, "instruction.md", "environment/Dockerfile", "tests/test.sh")
"""What makes a folder a task."""
FIXTURE_NAME = "fixture.yaml"
"""What makes a task Buzz-native."""


def load_task(folder: Path, kit: Path | None) -> Task:
    """Reads a task folder whole; a folder without ``fixture.yaml`` is a Harbor task.

    Args:
        folder: the task's folder.
        kit: the verifier kit, which its digest covers.

    Raises:
        ManifestError: with every fault of the folder.
    """
    faults = FaultList()
    _check_files(folder, kit, faults)
    faults.settle()
    config, fixture, instruction = None, None, ""
    with faults.gathering():
        config = load_task_config(folder)
    with faults.gathering():
        fixture = _load_fixture(folder)
    with faults.gathering():
        instruction = _load_instruction(folder)
    faults.settle()
    if config is None:
        raise AssertionError("a task without a fault has a configuration")
    try:
        digest = digest_of(folder, kit)
    except TaskFolderError as error:
        raise ManifestError([ManifestFault(str(folder), None, "", str(error))]) from error
    return Task(digest=digest, config=config, instruction=instruction, fixture=fixture)


def load_task_config(folder: Path) -> TaskConfig:
    """A folder's ``task.toml`` alone.

    Raises:
        ManifestError: the file is missing or not of the format.
    """
    return check(TaskConfig, read_document(folder / CONFIG_NAME))


def _check_files(folder: Path, kit: Path | None, faults: FaultList) -> None:
    for name in REQUIRED_FILES:
        path = folder / name
        if os.path.islink(path) or not os.path.isfile(path):
            message = f"a task folder needs {', '.join(REQUIRED_FILES)}"
            faults.add(ManifestFault(str(path), None, "", f"there is no such file: {message}"))
    if kit is not None and not os.path.isdir(kit):
        message = (
            "there is no verifier kit here: every task's digest covers it; it is "
            "looked for above the sweep file or --path, else in manifests/ of the working directory"
        )
        faults.add(ManifestFault(str(kit), None, "", message))


def _load_fixture(folder: Path) -> Fixture | None:
    path = folder / FIXTURE_NAME
    return check(Fixture, read_document(path)) if path.exists() else None


def _load_instruction(folder: Path) -> str:
    path = folder / "instruction.md"
    text = read_text(path)
    if not text.strip():
        raise ManifestError([ManifestFault(str(path), None, "", "an instruction may not be empty")])
    return text
