"""TLS between an agent and a relay: certificates, waiting, and two threads on one connection."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from tests.workers.agent.worlds import WAIT_S, listening
from workers.agent import tls
from workers.agent.http_post import HttpError, post
from workers.agent.tls import TlsSocket
from workers.agent.websocket import LinkError, WebSocket

HOST = "localhost"
AUTHORITY = trustme.CA()


@pytest.fixture(autouse=True)
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    tls.trusting.cache_clear()
    yield
    tls.trusting.cache_clear()


@contextmanager
def server(script: Callable[[ssl.SSLSocket], None], host: str = HOST) -> Iterator[int]:
    """Takes one connection and does what the script says; gives its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert(host).configure_cert(context)
    listener = listening()
    faults: list[BaseException] = []

    def serve() -> None:
        connection, _ = listener.accept()
        connection.settimeout(WAIT_S)
        try:
            with context.wrap_socket(connection, server_side=True) as secured:
                script(secured)
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            faults.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join(WAIT_S)
        listener.close()
    assert not [fault for fault in faults if not isinstance(fault, ssl.SSLError)], faults


def connected(port: int) -> TlsSocket:
    return TlsSocket(socket.create_connection((HOST, port), WAIT_S), HOST, WAIT_S)


def read_all(connection: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(65536)
    return data


def test_one_thread_sends_while_another_waits_for_what_comes() -> None:
    size = 1_000_000
    may_answer = threading.Event()

    def script(connection: ssl.SSLSocket) -> None:
        assert read_all(connection, size) == b"a" * size
        assert may_answer.wait(WAIT_S)
        connection.sendall(b"b" * size)

    with server(script) as port:
        link = connected(port)
        got: list[bytes] = []

        def receive() -> None:
            while piece := link.recv(65536):
                got.append(piece)

        reader = threading.Thread(target=receive)
        reader.start()
        link.sendall(b"a" * size)
        may_answer.set()
        reader.join(WAIT_S)
        assert b"".join(got) == b"b" * size
        link.close()


def test_waiting_has_an_end() -> None:
    over = threading.Event()
    with server(lambda _: over.wait(WAIT_S) and None) as port:
        link = connected(port)
        link.settimeout(0.02)
        with pytest.raises(socket.timeout):
            link.recv(10)
        over.set()
        link.settimeout(WAIT_S)
        assert link.recv(10) == b""
        link.close()


def test_a_relay_of_another_name_is_refused() -> None:
    with (
        server(lambda _: None, "other.test") as port,
        pytest.raises(LinkError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        WebSocket.connect(f"wss://{HOST}:{port}", WAIT_S, 1000)
    with (
        server(lambda _: None, "other.test") as port,
        pytest.raises(HttpError, match="CERTIFICATE_VERIFY_FAILED") as caught,
    ):
        post(f"https://{HOST}:{port}/", {}, b"", timeout_s=WAIT_S)
    assert caught.value.fault == "connect"


def test_a_request_by_tls() -> None:
    def script(connection: ssl.SSLSocket) -> None:
        head = connection.recv(65536)
        assert b"Host: localhost:" in head
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with server(script) as port:
        assert post(f"https://{HOST}:{port}/q", {}, b"", timeout_s=WAIT_S).body == b"{}"
