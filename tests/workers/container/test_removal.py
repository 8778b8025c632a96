"""Folders go whole, whatever a container made of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.container.removal import remove_tree

pytestmark = pytest.mark.long

DEEP = 3000
"""Levels: more than Python recurses, and a longer path than the kernel takes."""


def dig(folder: Path, levels: int) -> None:
    """Makes a folder in a folder in a folder; in a process of its own, which changes into them."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            for _ in range(levels):
                os.mkdir("d")
                os.chdir("d")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_tree_deeper_than_a_path_is_long_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "trial"
    root.mkdir()
    dig(root, DEEP)
    remove_tree(root)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed_and_nothing_is_opened(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "trial"
    outside.mkdir()
    (outside / "file").write_text("stays")
    (root / "in").mkdir(parents=True)
    (root / "in" / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"\xff\xfe\n")).write_text("")
    remove_tree(root)
    assert (outside / "file").read_text() == "stays"
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


def test_a_folder_that_was_closed_to_all_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "trial"
    (root / "in" / "deeper").mkdir(parents=True)
    (root / "in" / "deeper").chmod(0)
    (root / "in").chmod(0)
    remove_tree(root)
    assert not root.exists()


def test_gone_already_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")
