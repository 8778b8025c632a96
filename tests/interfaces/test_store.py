"""What every store must do, over a directory and over S3 on a real connection."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

from scheduler.bench.servers import BucketServer
from scheduler.serve.caching import CachingStore
from workers.storage import InvalidKeyError, MissingKeyError, Store, open_store
from workers.storage.observed import ObservedStore

BUCKET = "apiary"


class Quiet(MotoRequestHandler):
    """Says nothing of each request."""

    def log(self, *_: Any) -> None: ...


class OneWriteAtATime:
    """A WSGI application whose writes follow one another.

    S3 decides a conditional write in one step; moto looks first and writes then.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT":
            return list(self._application(environ, start_response))
        with self._turn:
            return list(self._application(environ, start_response))


@pytest.fixture(scope="module")
def s3_options() -> Iterator[dict[str, str]]:
    """Options of the URL of a bucket at a server of moto's, which ends with the module."""
    application = OneWriteAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    options = {
        "endpoint_url": f"http://127.0.0.1:{server.server_port}",
        "path_style": "true",
        "region": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        client = boto3.client(
            "s3", endpoint_url=options["endpoint_url"], region_name=options["region"]
        )
        client.create_bucket(Bucket=BUCKET)
        yield options
    server.shutdown()
    thread.join(10)
    server.server_close()


WRAPPERS: dict[str, Callable[[Store], Store]] = {
    "observed": lambda store: ObservedStore(store, lambda operation, result, seconds: None),
    "caching": CachingStore,
}
"""Stores over a file store, which change nothing of what it does."""


@pytest.fixture(scope="module")
def bench_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    """The S3 server of our benches, a process that ends with the module."""
    mark = secrets.token_hex(8)
    server = BucketServer(tmp_path_factory.mktemp("bench") / "b", dict(os.environ), mark)
    server.up()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield server
    server.kill()


@pytest.fixture(scope="module")
def bench_options(bench_server: BucketServer) -> dict[str, str]:
    """Options of the URL of a bucket at it."""
    return dict(parse_qsl(urlsplit(bench_server.url).query))


SERVERS = {"s3": "s3_options", "bench": "bench_options"}
"""Stores on a real connection, and the fixtures of their servers."""


@pytest.fixture(
    params=["file", *WRAPPERS, *(pytest.param(name, marks=pytest.mark.long) for name in SERVERS)]
)
def open_at(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the same fresh store, each time anew."""
    if request.param not in SERVERS:
        url = (tmp_path / "a store").as_uri()
        wrap = WRAPPERS.get(request.param, lambda store: store)
        return lambda: wrap(open_store(url))
    options = urlencode(request.getfixturevalue(SERVERS[request.param]))
    url = f"s3://{BUCKET}/{tmp_path.name}?{options}"
    return lambda: open_store(url)


@pytest.fixture
def store(open_at: Callable[[], Store]) -> Store:
    return open_at()


def test_of_sixteen_writers_exactly_one_creates(open_at: Callable[[], Store]) -> None:
    stores = [open_at(), open_at()] * 8
    for round_ in range(3):
        key = f"attempts/ab/{round_}/result.json"
        start = threading.Barrier(16)

        def race(number: int, key: str = key, start: threading.Barrier = start) -> bool:
            start.wait(10)
            return stores[number].create(key, f"writer {number}".encode())

        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(race, range(16)))
        assert sum(won) == 1
        assert stores[0].get(key) == f"writer {won.index(True)}".encode()


def test_create_leaves_what_is_there(store: Store) -> None:
    assert store.create("a", b"first")
    assert not store.create("a", b"second")
    assert store.get("a") == b"first"
    store.delete("a")
    assert store.create("a", b"third")


def test_put_replaces(store: Store) -> None:
    store.put("a/b", b"first, and longer")
    store.put("a/b", b"second")
    assert store.get("a/b") == b"second"
    assert not store.create("a/b", b"third")


def test_readers_see_whole_objects_only(store: Store) -> None:
    values = [bytes([number]) * 300_000 for number in range(4)]
    store.put("a", values[0])
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(store.put, "a", value) for value in values * 3]
        reads = [pool.submit(store.get, "a") for _ in range(20)]
        assert all(read.result() in values for read in reads)
        for write in writes:
            write.result()


def test_what_is_missing(store: Store) -> None:
    with pytest.raises(MissingKeyError, match="'no/such'"):
        store.get("no/such")
    assert not store.exists("no/such")
    assert list(store.keys("no/")) == []
    store.delete("no/such")
    store.put("a/b", b"")
    assert not store.exists("a")
    with pytest.raises(MissingKeyError):
        store.get("a")


def test_an_empty_object_is_an_object(store: Store) -> None:
    assert store.create("empty", b"")
    assert store.exists("empty")
    assert store.get("empty") == b""
    assert not store.create("empty", b"full")


def test_keys_are_sorted_and_found_by_any_prefix(store: Store) -> None:
    keys = ["a", "a-b/c", "a.b", "a0", "ab/c/d", "ab/c.d", "ab/c-d", "b/ü", "b/z", "b/é/日本", "B"]
    keys.remove("a")
    for key in keys:
        store.put(key, key.encode())
    for prefix in ("", "a", "a-", "ab/", "ab/c", "ab/c/", "ab/c/d", "b/é", "b/é/日", "x", "a0/"):
        expected = sorted(key for key in keys if key.startswith(prefix))
        assert list(store.keys(prefix)) == expected, prefix
    assert all(store.get(key) == key.encode() for key in keys)


def test_the_folders_right_below_a_folder(store: Store) -> None:
    for key in ("top", "b/x/1", "b/y/z/2", "b/w", "b-c/3", "a/4"):
        store.put(key, b"")
    assert store.children("") == ["a", "b", "b-c"]
    assert store.children("b/") == ["x", "y"]
    assert store.children("b/x/") == []
    assert store.children("nothing/") == []
    store.delete("a/4")
    assert store.children("") == ["b", "b-c"]
    with pytest.raises(InvalidKeyError, match="does not end with a '/'"):
        store.children("b")


def test_a_listing_of_over_a_thousand_keys_is_whole(
    store: Store, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    expected = [f"many/{number // 100:02}/{number:04}.json" for number in range(2105)]
    if "bench_server" in request.fixturenames:
        root = request.getfixturevalue("bench_server").objects / tmp_path.name
        for key in reversed(expected):
            (root / key).parent.mkdir(parents=True, exist_ok=True)
            (root / key).write_bytes(b"{}\n{}")
    elif store.url.startswith("s3:"):
        # Into the server's own memory: 2,105 requests would take longer than all other tests.
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for key in reversed(expected):
            backend.put_object(BUCKET, f"{tmp_path.name}/{key}", b"{}")
    else:
        for key in reversed(expected):
            (tmp_path / "a store" / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "a store" / key).write_bytes(b"{}")
    assert list(store.keys("many/")) == expected
    assert list(store.keys("many/20/")) == expected[2000:2100]


def test_a_deleted_key_is_gone(store: Store) -> None:
    store.put("a/b", b"1")
    store.put("a/c", b"2")
    store.delete("a/b")
    assert not store.exists("a/b")
    assert list(store.keys("a/")) == ["a/c"]


def test_a_large_file(store: Store, tmp_path: Path) -> None:
    block = bytes(range(256)) * 4096
    source = tmp_path / "large"
    source.write_bytes(block * 20)
    store.put_file("large", source)
    assert store.get("large") == block * 20
    source.write_bytes(b"")
    store.put_file("large", source)
    assert store.get("large") == b""


BAD_KEYS = [
    "", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/.", "a\0b", "a\nb", "a\\b",
    "a\x7f", "\ud800", "a/" * 600 + "b", "x" * 256, ".part-1", "a/.part-",
]  # fmt: skip


def test_keys_that_no_store_may_hold(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    operations: list[Callable[[str], object]] = [
        lambda key: store.create(key, b""),
        lambda key: store.put(key, b""),
        lambda key: store.put_file(key, file),
        store.get,
        store.exists,
        store.delete,
    ]
    for key in BAD_KEYS:
        for operation in operations:
            with pytest.raises(InvalidKeyError):
                operation(key)


def test_a_prefix_that_no_key_begins_with(store: Store) -> None:
    for prefix in ("/", "../", "a//", "a/./b", "\0"):
        with pytest.raises(InvalidKeyError):
            store.keys(prefix)


def test_a_file_that_is_none_is_refused(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"secret")
    link = tmp_path / "link"
    link.symlink_to(target)
    for path in (link, tmp_path, tmp_path / "missing"):
        with pytest.raises(Exception, match="put_file 'a'"):
            store.put_file("a", path)
    assert not store.exists("a")


PARTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
)
@given(parts=st.lists(PARTS, min_size=1, max_size=3), data=st.binary(max_size=200))
def test_what_was_put_is_what_is_got(store: Store, parts: list[str], data: bytes) -> None:
    key = "/".join(["any", *parts, "end"])
    try:
        store.put(key, data)
    except InvalidKeyError:
        assert "/" in "".join(parts) or "\\" in key or {".", ".."} & set(parts)
        return
    assert store.get(key) == data
    assert key in store.keys("any/")
    store.delete(key)


def test_a_clock_is_this_machines_or_none(store: Store) -> None:
    told = store.clock()
    assert told is None or abs(told - time.time()) < 60.0
    assert (told is None) == store.url.startswith("file:")
