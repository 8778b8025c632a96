"""A task folder to a checked task: ``task.toml``, instruction, fixture, digest."""

from __future__ import annotations

import os
from pathlib import Path

from scheduler.manifest.check import check
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault
from scheduler.manifest.files import read_document, read_text
from scheduler.manifest.harbor import HarborTask
from workers.contract.task import STATE_ONLY, Fixture, Task, TaskConfig
from workers.contract.task_folder import TaskFolderError, digest_of

CONFIG_NAME = "task.toml"
DOCKERFILE = "environment/Dockerfile"
REQUIRED_FILES = (CONFIG_NAME, "instruction.md", DOCKERFILE, "tests/test.sh")
"""What makes a folder a task; one whose image is pulled needs no Dockerfile."""
FIXTURE_NAME = "fixture.yaml"
"""What makes a task Buzz-native."""


def load_task(folder: Path, kit: Path | None) -> Task:
    """Reads a task folder whole; one without ``fixture.yaml`` is graded by its container's state.

    Args:
        folder: the task's folder.
        kit: the verifier kit, which its digest covers.

    Raises:
        ManifestError: with every fault of the folder.
    """
    faults = FaultList()
    _check_files(folder, kit, faults)
    config, fixture, instruction = None, None, ""
    if os.path.isfile(folder / CONFIG_NAME):
        # First, since it may say why something else is not there.
        with faults.gathering():
            config = load_task_config(folder)
    if config is not None and config.environment.docker_image is None:
        _check_file(folder / DOCKERFILE, faults)
    if not os.path.isfile(folder / "instruction.md"):
        faults.settle()
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
    """A folder's ``task.toml`` alone; it may say more of itself where there is no fixture.

    Raises:
        ManifestError: the file is missing or not of the format.
    """
    document = read_document(folder / CONFIG_NAME)
    if not os.path.lexists(folder / FIXTURE_NAME):
        return check(HarborTask, document).config(folder.name)
    config = check(TaskConfig, document)
    if config.metadata.freeze is not None:
        message = (
            "only a task that is graded by its container's state says how that is frozen; with "
            f"{FIXTURE_NAME} beside it, this one is graded by evidence"
        )
        raise ManifestError([document.fault(("metadata", "freeze"), message)])
    said = [
        document.fault(place, f"only a task without {FIXTURE_NAME} may say this")
        for place in STATE_ONLY
        if place[1] in getattr(config, place[0]).model_fields_set
    ]
    if said:
        raise ManifestError(said)
    return config


def _check_files(folder: Path, kit: Path | None, faults: FaultList) -> None:
    for name in REQUIRED_FILES:
        if name != DOCKERFILE:
            _check_file(folder / name, faults)
    if kit is not None and not os.path.isdir(kit):
        message = (
            "there is no verifier kit here: every task's digest covers it; it is "
            "looked for above the sweep file or --path, else in manifests/ of the working directory"
        )
        faults.add(ManifestFault(str(kit), None, "", message))


def _check_file(path: Path, faults: FaultList) -> None:
    if os.path.islink(path) or not os.path.isfile(path):
        message = f"a task folder needs {', '.join(REQUIRED_FILES)}"
        faults.add(ManifestFault(str(path), None, "", f"there is no such file: {message}"))


def _load_fixture(folder: Path) -> Fixture | None:
    path = folder / FIXTURE_NAME
    return check(Fixture, read_document(path)) if path.exists() else None


def _load_instruction(folder: Path) -> str:
    path = folder / "instruction.md"
    text = read_text(path)
    if not text.strip():
        raise ManifestError([ManifestFault(str(path), None, "", "an instruction may not be empty")])
    return text
