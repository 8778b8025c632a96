"""The last phase over a real store: what is written, in which order, and what side by side."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from tests.scheduler import builders
from tests.workers.store_doubles import file_store
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord
from workers.contract.trial import Commit
from workers.storage import Store, StoreError
from workers.trial.errors import PhaseError
from workers.trial.seal import UPLOADS, seal

NAMES = tuple(f"logs/agents/a{number}.log" for number in range(2 * UPLOADS))


class Watchful:
    """A store that notes what is written, and lets files come only several at once."""

    def __init__(self, store: Store, together: int = 1) -> None:
        self._store = store
        self._gate = threading.Barrier(together)
        self._lock = threading.Lock()
        self._under_way = 0
        self.most_under_way = 0
        self.written: list[str] = []
        self.refuses = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_file(self, key: str, path: Path) -> None:
        with self._lock:
            self._under_way += 1
            self.most_under_way = max(self.most_under_way, self._under_way)
        self._gate.wait(20.0)
        with self._lock:
            self._under_way -= 1
        if self.refuses and key.endswith(self.refuses):
            raise StoreError("the store is down")
        self._store.put_file(key, path)
        self.written.append(key.rpartition("/")[2])

    def put(self, key: str, data: bytes) -> None:
        self._store.put(key, data)
        self.written.append(key.rpartition("/")[2])

    def create(self, key: str, data: bytes) -> bool:
        self.written.append(key.rpartition("/")[2])
        return self._store.create(key, data)


def ended(folder: Path, cause: Cause = Cause.NONE) -> TryRecord:
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    cell = builders.cell_spec()
    made = builders.record(cell, builders.lease(cell), cause)
    return made.model_copy(update={"files": dict.fromkeys(NAMES, "0" * 64)})


def sealed(store: Watchful, folder: Path, *, valid: bool = True, seconds: float = 60.0) -> Commit:
    record = ended(folder)
    return asyncio.run(seal(cast(Store, store), folder, record, lambda: valid, seconds))


def test_files_go_side_by_side_then_the_record_then_the_commit(tmp_path: Path) -> None:
    store = Watchful(file_store(tmp_path), together=UPLOADS)
    assert sealed(store, tmp_path / "out") is Commit.WRITTEN
    *files, record, commit = store.written
    assert sorted(files) == sorted(name.rpartition("/")[2] for name in NAMES)
    assert (record, commit) == ("try.json", "result.json")
    assert store.most_under_way == UPLOADS


def test_a_late_try_is_not_committed(tmp_path: Path) -> None:
    store = Watchful(file_store(tmp_path))
    assert sealed(store, tmp_path / "out", valid=False) is Commit.LATE
    assert store.written[-2:] == ["try.json", "late.json"]


def test_a_file_that_the_store_does_not_take_leaves_no_record(tmp_path: Path) -> None:
    store = Watchful(file_store(tmp_path))
    store.refuses = "a1.log"
    with pytest.raises(PhaseError, match="the store is down") as raised:
        sealed(store, tmp_path / "out", seconds=0.05)
    assert raised.value.cause is Cause.STORE_UNAVAILABLE
    assert "try.json" not in store.written
