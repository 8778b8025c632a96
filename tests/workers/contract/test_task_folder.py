from __future__ import annotations

import gzip
import io
import os
import shutil
import socket
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workers.contract import task_folder
from workers.contract.task_folder import (
    FolderEntry,
    TaskFolderError,
    archive_key,
    digest_of,
    entries_digest,
    pack,
    pack_entries,
    read_folder,
    unpack,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "task-folder"
    (path / "tests").mkdir(parents=True)
    (path / "task.toml").write_text("a = 1\n")
    (path / "tests" / "test.sh").write_text("#!/bin/sh\n")
    (path / "tests" / "test.sh").chmod(0o755)
    return path


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    path = tmp_path / "kit-folder"
    path.mkdir()
    (path / "__init__.py").write_text("")
    return path


def test_the_key_holds_the_digest() -> None:
    assert archive_key("ab" * 32) == f"tasks/{'ab' * 32}.tar"


def test_the_digest_of_known_entries_never_changes() -> None:
    entries = (FolderEntry("kit/a.py", False, b""), FolderEntry("task/é/run.sh", True, b"x\n"))
    assert entries_digest(entries) == (
        "d2bc78c4fa5cb8bdc06da41d7243328036d7c0fd11f84ae06b68c8bbb807aca2"
    )


def test_what_counts_changes_the_digest_and_nothing_else_does(folder: Path, kit: Path) -> None:
    first = digest_of(folder, kit)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("x")
    (folder / "empty").mkdir()
    os.utime(folder / "task.toml", (1, 1))
    (folder / "task.toml").chmod(0o600)
    assert digest_of(folder, kit) == first
    seen = {first, digest_of(folder, None)}
    (folder / "task.toml").chmod(0o755)
    seen.add(digest_of(folder, kit))
    (folder / "task.toml").write_text("a = 2\n")
    seen.add(digest_of(folder, kit))
    (folder / "task.toml").rename(folder / "task2.toml")
    seen.add(digest_of(folder, kit))
    (kit / "__init__.py").write_text("#")
    seen.add(digest_of(folder, kit))
    (folder / ".hidden").write_text("")
    seen.add(digest_of(folder, kit))
    assert len(seen) == 7


def test_where_the_folder_is_does_not_count(folder: Path, kit: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert digest_of(tmp_path / "elsewhere", kit) == digest_of(folder, kit)
    assert pack(tmp_path / "elsewhere", kit) == pack(folder, kit)


def test_links_sockets_and_pipes_are_refused(
    folder: Path, kit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, target in [("link", "task.toml"), ("dir-link", "tests"), ("dead-link", "none")]:
        (folder / name).symlink_to(target)
        with pytest.raises(TaskFolderError, match=f"{name}: a link"):
            read_folder(folder, kit)
        (folder / name).unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(TaskFolderError, match="pipe: a special file"):
        read_folder(folder, kit)
    (folder / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # a socket's path may be 107 bytes long
        listener.bind("s")
        with pytest.raises(TaskFolderError, match="special file"):
            read_folder(folder, kit)


def test_names_that_cannot_be_told_apart_are_refused(folder: Path, kit: Path) -> None:
    for name in (b"a\nb", b"\xff"):
        path = os.fsencode(folder) + b"/" + name
        with open(path, "w"):
            pass
        with pytest.raises(TaskFolderError, match="file name"):
            read_folder(folder, kit)
        os.unlink(path)


def test_missing_folders_and_too_much_are_refused(
    folder: Path, kit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TaskFolderError, match="cannot be listed"):
        read_folder(folder / "none", kit)
    with pytest.raises(TaskFolderError, match="cannot be listed"):
        read_folder(folder, kit / "none")
    monkeypatch.setattr(task_folder, "MAX_BYTES", 15)
    with pytest.raises(TaskFolderError, match="exceed 15 bytes"):
        read_folder(folder, kit)
    monkeypatch.setattr(task_folder, "MAX_FILES", 1)
    with pytest.raises(TaskFolderError, match="more than 1 files"):
        monkeypatch.setattr(task_folder, "MAX_BYTES", 1000)
        read_folder(folder, kit)


NAMES = st.text(st.sampled_from("abé._ -"), min_size=1, max_size=6).filter(
    lambda name: name not in (".", "..")
)
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    st.tuples(st.booleans(), st.binary(max_size=40)),
    max_size=6,
).filter(
    lambda tree: not any(one != two and two[: len(one)] == one for one in tree for two in tree)
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(TREES)
def test_what_is_packed_is_unpacked(
    tmp_path: Path, tree: dict[tuple[str, ...], tuple[bool, bytes]]
) -> None:
    base = tmp_path / "base"
    shutil.rmtree(base, ignore_errors=True)
    for root in ("task", "kit"):
        (base / root).mkdir(parents=True)
    for parts, (executable, data) in tree.items():
        path = base.joinpath("task", *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if executable else 0o644)
    data = pack(base / "task", base / "kit")
    target = base / "out"
    unpack(data, target)
    (target / "task").mkdir(exist_ok=True)
    assert read_folder(target / "task", None) == read_folder(base / "task", None)
    assert pack(target / "task", None) == data


def test_unpacked_files_may_be_read_by_any_user(folder: Path, kit: Path, tmp_path: Path) -> None:
    (folder / "task.toml").chmod(0o600)
    before = os.umask(0o077)
    try:
        unpack(pack(folder, kit), tmp_path / "out")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "out").rglob("*")}
    assert modes == {
        "task": 0o755, "kit": 0o755, "tests": 0o755,
        "task.toml": 0o644, "test.sh": 0o755, "__init__.py": 0o644,
    }  # fmt: skip


def member(name: str, data: bytes = b"", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in changes.items():
        setattr(info, field, value)
    return info, data


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


GOOD = member("task/a", b"abc")
HOSTILE: dict[str, bytes] = {
    "absolute": tar_of(member("/etc/passwd", b"x")),
    "upward": tar_of(member("task/../../x", b"x")),
    "upward root": tar_of(member("../task/x", b"x")),
    "elsewhere": tar_of(member("other/x", b"x")),
    "root itself": tar_of(member("task", b"x")),
    "dot part": tar_of(member("task/./x", b"x")),
    "empty part": tar_of(member("task//x", b"x")),
    "line break": tar_of(member("task/a\nb", b"x")),
    "long name": tar_of(member("task/" + "n" * 2000, b"x")),
    "symbolic link": tar_of(member("task/l", type=tarfile.SYMTYPE, linkname="/etc")),
    "hard link": tar_of(GOOD, member("task/l", type=tarfile.LNKTYPE, linkname="task/a")),
    "device": tar_of(member("task/d", type=tarfile.CHRTYPE)),
    "pipe": tar_of(member("task/d", type=tarfile.FIFOTYPE)),
    "folder": tar_of(member("task/d", type=tarfile.DIRTYPE)),
    "twice": tar_of(GOOD, GOOD),
    "below a file": tar_of(GOOD, member("task/a/b", b"x")),
    "file over a folder": tar_of(member("task/a/b", b"x"), GOOD),
    "cut short": tar_of(GOOD)[:514],
    "garbage": b"not a tar" * 100,
    "empty": b"",
    "gzip": gzip.compress(tar_of(GOOD)),
    "huge size in the header": tar_of(member("task/a", b""))[:124]
    + b"77777777777\0" + tar_of(member("task/a", b""))[136:],
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_leave_nothing(tmp_path: Path, data: bytes) -> None:
    target = tmp_path / "deep" / "out"
    with pytest.raises(TaskFolderError):
        unpack(data, target)
    assert not target.exists()
    assert list(tmp_path.rglob("*")) in ([], [tmp_path / "deep"])


def test_bounds_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tar_of(GOOD, member("task/b", b"defg"))
    monkeypatch.setattr(task_folder, "MAX_BYTES", 6)
    with pytest.raises(TaskFolderError, match="too many"):
        unpack(data, tmp_path / "out")
    monkeypatch.setattr(task_folder, "MAX_BYTES", 7)
    monkeypatch.setattr(task_folder, "MAX_FILES", 1)
    with pytest.raises(TaskFolderError, match="too many"):
        unpack(data, tmp_path / "out")


def test_an_occupied_target_is_refused(folder: Path, kit: Path) -> None:
    with pytest.raises(TaskFolderError, match="empty folder"):
        unpack(pack(folder, kit), kit)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_archive_is_refused_or_read_safely(data: st.DataObject) -> None:
    whole = bytearray(pack_entries((FolderEntry("task/a", False, b"abc" * 50),)))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, 511))] = data.draw(st.integers(0, 255))
    try:
        entries = task_folder._members(bytes(whole))
    except TaskFolderError:
        return
    for entry in entries:
        assert entry.path.startswith(("task/", "kit/"))
        assert ".." not in entry.path.split("/")
