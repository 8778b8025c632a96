from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.storage import StoreError
from workers.storage.source import open_regular


def test_a_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with open_regular("k", path) as stream:
        assert stream.read() == b"abc"


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "missing"):
        with pytest.raises(StoreError, match=f"put_file 'k'.*'{name}'"):
            open_regular("k", tmp_path / name)
