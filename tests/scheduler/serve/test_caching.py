from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.serve.caching import CachingStore
from workers.storage import MissingKeyError, open_store

LOCK, TRY, REPORT = "sweeps/a/lock-1.json", "sweeps/a/tries/00/x/1-1/try.json", "sweeps/a/report/x"


def test_what_never_changes_is_read_once(tmp_path: Path) -> None:
    below = open_store(f"file://{tmp_path}")
    store = CachingStore(below)
    for key in (LOCK, TRY, REPORT):
        with pytest.raises(MissingKeyError):
            store.get(key)
        store.put(key, b"first")
        assert store.get(key) == b"first"
        below.put(key, b"second")
    assert (store.get(LOCK), store.get(TRY), store.get(REPORT)) == (b"first", b"first", b"second")


def test_the_longest_unused_goes_first(tmp_path: Path) -> None:
    below = open_store(f"file://{tmp_path}")
    store = CachingStore(below, cache_bytes=80)
    keys = [f"sweeps/a/lock-{number}.json" for number in range(1, 12)]
    for key in keys:
        below.put(key, b"12345678")
        store.get(key)
        store.get(keys[0])
        below.put(key, b"changed")
    assert store.get(keys[0]) == b"12345678"
    assert store.get(keys[1]) == b"changed"


def test_all_else_is_the_stores_own(tmp_path: Path) -> None:
    store = CachingStore(open_store(f"file://{tmp_path / 'store'}"))
    assert store.create(LOCK, b"")
    assert not store.create(LOCK, b"")
    (tmp_path / "file").write_bytes(b"x")
    store.put_file(TRY, tmp_path / "file")
    assert list(store.keys("sweeps/")) == [LOCK, TRY]
    assert store.children("sweeps/") == ["a"]
    assert store.exists(TRY)
    store.delete(TRY)
    assert not store.exists(TRY)
    assert store.clock() is None
