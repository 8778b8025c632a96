"""S3 when things go wrong: against small servers that misbehave on purpose."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from workers.storage import ClockSkewError, MissingKeyError, StoreError
from workers.storage.s3 import S3Bounds, S3Store

pytestmark = pytest.mark.long

BOUNDS = S3Bounds(connect_s=1, read_s=0.3, requests=2, conflict_wait_s=0.01)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class Server(ThreadingHTTPServer):
    """Answers each request as its script says."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Callable[[Request], None]) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.script = script
        self.seen: list[str] = []
        self.metadata: dict[str, str] = {}

    def handle_error(self, *_: Any) -> None:
        """A client that gave up is what some tests want."""


class Request(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(self.command)
        self.server.script(self)

    do_GET = do_PUT = do_HEAD = do_DELETE = _serve

    def answer(self, status: int, body: str = "", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    def fail(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>so it is</Message></Error>")

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving(script: Callable[[Request], None]) -> Iterator[tuple[Server, S3Store]]:
    server = Server(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server, store_at(server.server_port)
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()


def store_at(port: int, bounds: S3Bounds = BOUNDS) -> S3Store:
    return S3Store(
        "s3://bucket/p",
        "bucket",
        "p",
        endpoint_url=f"http://127.0.0.1:{port}",
        region="us-east-1",
        path_style=True,
        bounds=bounds,
    )


def everything(store: S3Store) -> list[Callable[[], object]]:
    return [
        lambda: store.create("k", b"x"),
        lambda: store.put("k", b"x"),
        lambda: store.get("k"),
        lambda: store.exists("k"),
        lambda: list(store.keys("")),
        lambda: store.delete("k"),
    ]


def test_a_server_that_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    store = store_at(port, S3Bounds(connect_s=1, read_s=1, requests=1))
    for operation in everything(store):
        start = time.monotonic()
        with pytest.raises(StoreError) as caught:
            operation()
        assert time.monotonic() - start < 2
        assert "hunter2" not in str(caught.value)
    with pytest.raises(StoreError, match="create 'k'"):
        store.create("k", b"")


def test_a_refusal_for_the_time_is_told_from_others() -> None:
    for code, expected in (("RequestTimeTooSkewed", ClockSkewError), ("AccessDenied", StoreError)):
        with (
            serving(lambda request, code=code: request.fail(403, code)) as (_, store),  # type: ignore[misc]
            pytest.raises(StoreError) as caught,
        ):
            store.put("k", b"x")
        assert type(caught.value) is expected


def test_a_server_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        store = store_at(sock.getsockname()[1], S3Bounds(connect_s=1, read_s=0.2, requests=1))
        for operation in everything(store):
            start = time.monotonic()
            with pytest.raises(StoreError):
                operation()
            assert time.monotonic() - start < 2


def test_a_server_that_refuses() -> None:
    with serving(lambda request: request.fail(403, "AccessDenied")) as (_, store):
        for operation in everything(store):
            with pytest.raises(StoreError, match=r"AccessDenied|403") as caught:
                operation()
            assert not isinstance(caught.value, MissingKeyError)


def test_a_bucket_that_is_missing() -> None:
    with serving(lambda request: request.fail(404, "NoSuchBucket")) as (_, store):
        with pytest.raises(StoreError, match="NoSuchBucket"):
            store.create("k", b"")
        with pytest.raises(StoreError, match="NoSuchBucket") as caught:
            store.get("k")
        assert not isinstance(caught.value, MissingKeyError)


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_create_whose_answer_was_lost(is_ours: bool) -> None:
    """The object is written, the answer lost, the repeat refused: whose object is it?"""

    def script(request: Request) -> None:
        server = request.server
        if request.command == "HEAD":
            request.answer(200, headers=server.metadata)
        elif server.seen.count("PUT") == 1:
            assert request.headers["If-None-Match"] == "*"
            mark = request.headers["x-amz-meta-apiary-writer"] if is_ours else "another"
            server.metadata = {"x-amz-meta-apiary-writer": mark}
            request.hang_up()
        else:
            request.fail(412, "PreconditionFailed")

    with serving(script) as (server, store):
        assert store.create("k", b"x") is is_ours
        assert server.seen == ["PUT", "PUT", "HEAD"]


def test_a_create_that_met_another_in_flight() -> None:
    def script(request: Request) -> None:
        if request.server.seen.count("PUT") == 1:
            request.fail(409, "ConditionalRequestConflict")
        else:
            request.answer(200)

    with serving(script) as (server, store):
        assert store.create("k", b"x")
        assert server.seen == ["PUT", "PUT"]


def test_conflicts_without_end() -> None:
    with serving(lambda request: request.fail(409, "ConditionalRequestConflict")) as (
        server,
        store,
    ):
        with pytest.raises(StoreError, match="ConditionalRequestConflict"):
            store.create("k", b"x")
        assert server.seen == ["PUT", "PUT"]


def test_a_loser_whose_winner_was_deleted() -> None:
    def script(request: Request) -> None:
        if request.command == "HEAD":
            request.answer(404)
        else:
            request.fail(412, "PreconditionFailed")

    with serving(script) as (_, store):
        assert not store.create("k", b"x")


def test_a_fault_of_the_server_is_asked_again() -> None:
    def script(request: Request) -> None:
        if len(request.server.seen) == 1:
            request.fail(500, "InternalError")
        else:
            request.answer(200)

    with serving(script) as (server, store):
        store.put("k", b"x")
        assert server.seen == ["PUT", "PUT"]


@pytest.mark.parametrize("recovers", [True, False])
def test_a_body_that_breaks_off(recovers: bool) -> None:
    def script(request: Request) -> None:
        if recovers and len(request.server.seen) > 1:
            request.answer(200, "whole")
        else:
            request.send_response(200)
            request.send_header("Content-Length", "5")
            request.end_headers()
            request.wfile.write(b"wh")
            request.hang_up()

    with serving(script) as (server, store):
        if recovers:
            assert store.get("k") == b"whole"
        else:
            with pytest.raises(StoreError, match="get 'k'"):
                store.get("k")
        assert server.seen == ["GET", "GET"]


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(StoreError, match="credentials"):
        store_at(9).put("k", b"x")


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(StoreError, match="open"):
        S3Store("s3://b", "b", "", endpoint_url="http://")


@pytest.mark.parametrize("status", [200, 403, 404])
def test_the_servers_clock_is_read_from_any_answer(status: int) -> None:
    def ahead(request: Request) -> None:
        wall = formatdate(time.time() + 3600.0, usegmt=True)
        request.date_time_string = lambda timestamp=None: wall  # type: ignore[method-assign]
        request.answer(status)

    with serving(ahead) as (_, store):
        told = store.clock()
        assert told is not None
        assert told - time.time() == pytest.approx(3600.0, abs=30.0)


def test_a_date_that_is_none_is_no_clock_and_a_dead_server_is_a_fault() -> None:
    def undated(request: Request) -> None:
        request.date_time_string = lambda timestamp=None: "soon"  # type: ignore[method-assign]
        request.answer(404)

    with serving(undated) as (_, store):
        assert store.clock() is None
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(StoreError, match="clock"):
        store_at(port).clock()
