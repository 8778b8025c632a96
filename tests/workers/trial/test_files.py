"""What a container wrote is read with suspicion."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.container.disk import LEAST_BYTES, used_bytes
from workers.container.ownership import this_process
from workers.container.scratch import OWNER_FILE
from workers.trial.files import (
    LogTail,
    TrialFolder,
    UnsafeFileError,
    read_guarded,
    read_head_and_tail,
)
from workers.trial.secrets import Secrets


def make_link(path: Path) -> None:
    secret = path.parent / "elsewhere"
    secret.write_text("secret")
    path.symlink_to(secret)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [make_link, make_fifo, make_folder])
@pytest.mark.parametrize("read", [read_guarded, read_head_and_tail])
def test_only_regular_files_are_read(tmp_path: Path, make: object, read: object) -> None:
    path = tmp_path / "reward.json"
    make(path)  # type: ignore[operator]
    with pytest.raises(UnsafeFileError, match=r"reward\.json"):
        read(path, 100)  # type: ignore[operator]


def test_a_large_file_is_refused_where_it_must_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "reward.json"
    path.write_bytes(b"x" * 101)
    with pytest.raises(UnsafeFileError, match="larger than 100"):
        read_guarded(path, 100)
    assert len(read_guarded(path, 101)) == 101


def test_a_large_log_keeps_head_and_tail(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"first" + b"." * 1000 + b"last!")
    kept = read_head_and_tail(path, 10)
    assert kept == (b"first\n[1000 bytes left out]\nlast!", 1000)
    assert read_head_and_tail(path, 1010) == (path.read_bytes(), 0)


def test_a_log_is_kept_as_its_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(bytes(range(256)) * 3)
    assert read_head_and_tail(path, 10_000).data == path.read_bytes()
    kept = read_head_and_tail(path, 20)
    assert kept.data == bytes(range(10)) + b"\n[748 bytes left out]\n" + bytes(range(246, 256))


def test_a_tail_leaps_over_a_hole_of_a_terabyte(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    tail = LogTail(path)
    path.write_bytes(b"one\n")
    assert tail.lines() == ["one"]
    os.truncate(path, 1 << 40)
    assert tail.lines() == []
    with path.open("ab") as stream:
        stream.write(b"\ntwo\n")
    assert tail.lines()[-1] == "two"
    assert tail.offset == (1 << 40) + 5


def test_a_tail_loses_no_line_that_is_written_while_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    tail = LogTail(path)
    assert tail.lines() == ["one"]
    seek = os.lseek

    def seek_and_be_late(descriptor: int, offset: int, how: int) -> int:
        try:
            return seek(descriptor, offset, how)
        except OSError:
            with path.open("ab") as log:
                log.write(b"two\n")
            raise

    monkeypatch.setattr(os, "lseek", seek_and_be_late)
    found = tail.lines()
    monkeypatch.undo()
    assert found + tail.lines() == ["two"]


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    tail = LogTail(path)
    assert tail.lines() == []
    path.write_bytes(b"one\ntw")
    assert tail.lines() == ["one"]
    with path.open("ab") as stream:
        stream.write(b"o\nthree\n")
    assert tail.lines() == ["two", "three"]
    assert tail.lines() == []


def test_a_line_without_end_does_not_grow_without_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    tail = LogTail(path, max_step=1000)
    path.write_bytes(b"x" * 10_000 + b"\nmarker\n")
    lines = [line for _ in range(20) for line in tail.lines()]
    assert lines[-1] == "marker"
    assert max(map(len, lines)) <= 2000


def test_only_lines_with_certain_words_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    tail = LogTail(path, max_step=64, words=(b"turn", b"steer"))
    text = "".join(f"noise {n}\nturn {n} and turn\n" for n in range(50)) + "steer\nlast turn"
    path.write_text(text)
    lines = tail.lines()
    while tail.behind or tail.moved:
        lines += tail.lines()
    assert lines == [*(f"turn {n} and turn" for n in range(50)), "steer"]
    with path.open("a") as stream:
        stream.write(" ends\n")
    assert tail.lines() == ["last turn ends"]


def test_writes_strike_secrets_out(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    secrets = Secrets()
    secrets.add_token("the-token")
    folder.write("logs/agents/a.log", b"printed the-token here", secrets)
    assert b"the-token" not in (folder.out / "logs/agents/a.log").read_bytes()


def test_nobody_else_of_the_machine_enters_and_only_a_kept_folder_outlives_its_node(
    tmp_path: Path,
) -> None:
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    # A container's root may leave a program there that runs as the host's root.
    assert folder.root.stat().st_mode & 0o777 == 0o700
    assert (folder.root / OWNER_FILE).read_text() == this_process()
    folder.keep()
    assert not (folder.root / OWNER_FILE).exists()


def test_a_folder_is_removed_once_and_again(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    folder.remove()
    assert not folder.root.exists()
    folder.remove()


def test_what_a_folder_takes_is_counted_without_following_and_no_further_than_needed(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log").write_bytes(b"x" * 10 * LEAST_BYTES)
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    (tmp_path / "link").symlink_to("/")
    assert used_bytes(tmp_path, 1 << 40) == 13 * LEAST_BYTES
    assert 0 < used_bytes(tmp_path, 1) <= 11 * LEAST_BYTES
    assert used_bytes(tmp_path / "gone", 1) == 0
