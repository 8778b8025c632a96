"""What a dead process left goes, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from workers.container.ownership import this_process
from workers.container.scratch import (
    OWNER_FILE,
    TRIALS,
    abandoned,
    disown,
    folders_with_owners,
    own,
    remove_abandoned,
    scratch_folder,
)

SCRIPT = """
import sys
from pathlib import Path
from workers.container.scratch import own
own(Path(sys.argv[1]))
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files of the test's own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_by_the_dead(folder: Path) -> Path:
    """A folder whose owner has ended without removing it."""
    (folder / "agents").mkdir(parents=True)
    subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], check=True, timeout=60)
    return folder


def test_a_scratch_folder_names_its_process_and_goes_with_its_block(temporary: Path) -> None:
    with scratch_folder("test") as folder:
        assert folder.parent == temporary
        assert (folder / OWNER_FILE).read_text() == this_process()
        assert abandoned([folder]) == []
    assert list(temporary.iterdir()) == []


def test_only_what_the_dead_left_is_removed(temporary: Path, tmp_path: Path) -> None:
    trials = tmp_path / "node" / TRIALS
    dead = [left_by_the_dead(temporary / "apiary-x"), left_by_the_dead(trials / "1")]
    kept = left_by_the_dead(trials / "2")
    disown(kept)
    living = trials / "3"
    living.mkdir()
    own(living)
    unnamed = temporary / "apiary-plan"
    unnamed.mkdir()
    (temporary / "apiary-file.md").write_text("")
    linked = temporary / "apiary-link"
    linked.symlink_to(dead[1])
    garbled = temporary / "apiary-garbled"
    garbled.mkdir()
    (garbled / OWNER_FILE).write_bytes(b"\xff1:2:3")
    assert remove_abandoned(folders_with_owners(tmp_path / "node")) == dead
    assert not any(folder.exists() for folder in dead)
    assert all(path.exists() for path in (kept, living, unnamed, garbled))
    assert linked.is_symlink()


def test_a_workspace_that_is_not_there_yet_has_nothing(tmp_path: Path) -> None:
    assert folders_with_owners(tmp_path / "nothing") == []
