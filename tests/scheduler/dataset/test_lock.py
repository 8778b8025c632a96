from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scheduler.dataset.lock import (
    TaskLock,
    changes,
    digest_fault,
    lock_path,
    make_lock,
    read_lock,
    write_lock,
)
from scheduler.manifest import ManifestError
from tests.scheduler.dataset.builders import KIT, edit, make_task
from workers.contract.task_folder import digest_of

A, B, K = "a" * 64, "b" * 64, "1" * 64


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    made = make_lock({"small": digest_of(folder, KIT), "1e5": "5" * 64}, KIT)
    written = write_lock(folder.parent, made)
    assert written == lock_path(folder.parent) == tmp_path / "tasks.lock.yaml"
    assert read_lock(folder.parent) == made
    assert list(made.tasks) == ["1e5", "small"]
    write_lock(folder.parent, TaskLock(verifier_kit=K, tasks={}))
    assert read_lock(folder.parent) == TaskLock(verifier_kit=K, tasks={})


def test_a_data_set_without_a_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path) is None
    assert digest_fault(None, "small", A, K) == ""


def test_a_lock_of_another_format_is_refused(tmp_path: Path) -> None:
    lock_path(tmp_path).write_text("schema_version: 1\nverifier_kit: x\ntasks: {}\n")
    with pytest.raises(ManifestError, match="verifier_kit: expected text of the form"):
        read_lock(tmp_path)


@pytest.mark.parametrize(
    ("name", "digest", "kit", "fault"),
    [
        ("small", A, K, ""),
        ("small", B, K, "the task changed: bbbbbbbbbbbb, pinned is aaaaaaaaaaaa"),
        ("small", B, B, "the verifier kit changed: bbbbbbbbbbbb, pinned is aaaaaaaaaaaa"),
        ("other", A, K, "the lock has no other: run `apiary tasks lock`"),
    ],
)
def test_what_differs(name: str, digest: str, kit: str, fault: str) -> None:
    lock = TaskLock(verifier_kit=K, tasks={"small": A})
    assert digest_fault(lock, name, digest, kit) == fault


def test_every_change_of_folder_or_kit_shows(tmp_path: Path) -> None:
    folder, kit = make_task(tmp_path), tmp_path / "kit"
    shutil.copytree(KIT, kit, ignore=shutil.ignore_patterns("__pycache__"))
    lock = make_lock({"small": digest_of(folder, kit)}, kit)

    def fault() -> str:
        return digest_fault(lock, "small", digest_of(folder, kit), digest_of(kit, None))

    assert fault() == ""
    edit(folder / "instruction.md", "GAMMA request", "DELTA request")
    assert fault().startswith("the task changed")
    edit(folder / "instruction.md", "DELTA request", "GAMMA request")
    (folder / "tests" / "test.sh").chmod(0o644)
    assert fault().startswith("the task changed")
    (folder / "tests" / "test.sh").chmod(0o755)
    assert fault() == ""
    (kit / "more.py").write_text("")
    assert fault().startswith("the verifier kit changed")


def test_changes_are_told() -> None:
    before = TaskLock(verifier_kit=K, tasks={"a": A, "b": A, "c": A})
    after = TaskLock(verifier_kit=K, tasks={"b": B, "c": A, "d": B})
    assert changes(before, after) == [
        "a: gone",
        "b: aaaaaaaaaaaa → bbbbbbbbbbbb",
        "d: new, bbbbbbbbbbbb",
    ]
    assert changes(None, before) == [f"{name}: new, aaaaaaaaaaaa" for name in "abc"]
    assert changes(after, after) == []
