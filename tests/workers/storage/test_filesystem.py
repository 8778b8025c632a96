from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from workers.storage import MissingKeyError, StoreError
from workers.storage.filesystem import FileStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> FileStore:
    return FileStore(root, root.as_uri())


def test_no_link_leads_out_of_the_root(store: FileStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    store.put("inside", b"1")
    (root / "folder").symlink_to(outside)
    (root / "object").symlink_to(outside / "secret")
    operations: list[Callable[[], object]] = [
        lambda: store.get("folder/secret"),
        lambda: store.get("object"),
        lambda: store.create("folder/new", b"x"),
        lambda: store.put("folder/secret", b"x"),
        lambda: store.create("object", b"x"),
    ]
    for operation in operations:
        with pytest.raises(StoreError):
            operation()
    assert not store.exists("folder/secret")
    assert not store.exists("object")
    assert list(store.keys("")) == ["inside"]
    store.delete("folder/secret")
    store.put("object", b"mine")
    assert store.get("object") == b"mine"
    assert (outside / "secret").read_bytes() == b"secret"
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


def test_a_key_is_an_object_or_a_folder(store: FileStore) -> None:
    store.put("a/b", b"1")
    for operation in (store.create, store.put):
        with pytest.raises(StoreError, match="'a'"):
            operation("a", b"2")
        with pytest.raises(StoreError, match=r"'a/b/c'.*not a folder"):
            operation("a/b/c", b"2")
    with pytest.raises(MissingKeyError):
        store.get("a/b/c")
    assert not store.exists("a/b/c")
    store.delete("a/b/c")
    store.delete("a")
    assert list(store.keys("")) == ["a/b"]


def test_nothing_partial_is_left_or_listed(store: FileStore, root: Path) -> None:
    assert store.create("a", b"1")
    assert not store.create("a", b"2")
    store.put("a", b"3")
    (root / ".part-0000").write_bytes(b"from a writer that died")
    assert list(store.keys("")) == ["a"]
    assert sorted(os.listdir(root)) == [".part-0000", "a"]


def test_a_source_that_fails_leaves_nothing(store: FileStore, root: Path) -> None:
    class Broken:
        def read(self, _: int) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(StoreError, match="put 'a': Input/output error"):
        store._put("put", "a", Broken())  # type: ignore[arg-type]
    assert os.listdir(root) == []


def test_what_is_no_object_is_not_listed(store: FileStore, root: Path) -> None:
    store.put("a", b"1")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"\xff")).write_bytes(b"")
    (root / "line\nbreak").write_bytes(b"")
    (root / "empty").mkdir()
    assert list(store.keys("")) == ["a"]
    assert not store.exists("pipe")
    with pytest.raises(MissingKeyError):
        store.get("pipe")


def test_no_root_is_an_empty_store(store: FileStore, root: Path) -> None:
    assert list(store.keys("")) == []
    assert not store.exists("a")
    with pytest.raises(MissingKeyError):
        store.get("a")
    assert not root.exists()


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FileStore(tmp_path / "file", "file:///file")
    with pytest.raises(StoreError, match="create 'a'"):
        store.create("a", b"")


def test_folders_may_come_into_being_under_many_hands(store: FileStore) -> None:
    start = threading.Barrier(8)
    faults: list[StoreError] = []

    def write(number: int) -> None:
        try:
            start.wait(10)
            store.create(f"x/y/z/{number}", b"")
        except StoreError as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert faults == []
    assert len(list(store.keys("x/y/z/"))) == 8


def test_objects_are_readable_files(store: FileStore, root: Path) -> None:
    store.create("a", b"1")
    mode = stat.S_IMODE((root / "a").stat().st_mode)
    assert mode & 0o400
    assert not mode & 0o111


def test_a_listing_goes_on_while_objects_vanish(store: FileStore) -> None:
    for name in ("a/1", "b/1", "c/1"):
        store.put(name, b"")
    listing = store.keys("")
    assert next(listing) == "a/1"
    store.delete("b/1")
    assert list(listing) == ["c/1"]


@pytest.mark.parametrize("operation", ["create", "put"])
def test_a_root_where_no_folder_can_be_made_is_no_missing_object(operation: str) -> None:
    store = FileStore(Path("/proc/nowhere"), "file:///proc/nowhere")
    with pytest.raises(StoreError, match="cannot be made") as refused:
        getattr(store, operation)("a/b", b"1")
    assert not isinstance(refused.value, MissingKeyError)
