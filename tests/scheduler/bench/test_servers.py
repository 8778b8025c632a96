"""The S3 server as a process: what was written is there after SIGKILL, and it is as it is told."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.bench.processes import marked
from scheduler.bench.servers import BucketServer
from workers.storage import Store, StoreError, open_store

pytestmark = pytest.mark.long


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    mark = secrets.token_hex(8)
    made = BucketServer(tmp_path / "b", dict(os.environ), mark)
    made.up()
    yield made
    made.kill()
    assert marked(mark) == []


@pytest.fixture
def store(server: BucketServer) -> Store:
    return open_store(server.url)


def test_what_was_written_is_there_after_a_kill(server: BucketServer, store: Store) -> None:
    store.put("a/b", b"one\ntwo")
    assert store.create("a/c", b"")
    server.kill()
    server.up()
    assert store.get("a/b") == b"one\ntwo"
    assert not store.create("a/c", b"again")
    assert list(store.keys("a/")) == ["a/b", "a/c"]


def test_it_refuses_what_it_is_told_to(server: BucketServer, store: Store) -> None:
    server.refuse("PUT .*/result.json")
    store.put("attempts/aa/a/evidence.json", b"x")
    with pytest.raises(StoreError, match="ServiceUnavailable"):
        store.create("attempts/aa/a/result.json", b"x")
    server.allow()
    assert store.create("attempts/aa/a/result.json", b"x")
    assert not store.create("attempts/aa/a/result.json", b"y")
    assert server.results_written() == ["bench/attempts/aa/a/result.json"]


def test_a_frozen_one_goes_on_where_it_was(server: BucketServer, store: Store) -> None:
    server.freeze()
    server.thaw()
    store.put("a", b"x")
    assert store.get("a") == b"x"
