"""A data set of one small task: the skeleton of a new one, beside the shipped kit."""

from __future__ import annotations

from pathlib import Path

from scheduler.dataset.skeleton import write_skeleton
from scheduler.manifest.task import load_task
from workers.contract.task import Task

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = ROOT / "manifests"
KIT = MANIFESTS / "verifier_kit"


def make_task(root: Path, name: str = "small", layer: str = "regression") -> Path:
    """Writes a skeleton into the data set ``root/tasks``; gives its folder."""
    folder = root / "tasks" / name
    write_skeleton(folder, layer)
    return folder


def read_task(folder: Path) -> Task:
    """The task of a folder, with the shipped kit."""
    return load_task(folder, KIT)


def edit(path: Path, old: str, new: str) -> None:
    """Changes a file's text; what is to be changed must be there."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
