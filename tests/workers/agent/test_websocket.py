from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from tests.workers.agent.test_websocket_frames import server_frame
from tests.workers.agent.worlds import WAIT_S, listening
from workers.agent.websocket import LinkError, ReceiveTimeout, WebSocket
from workers.agent.websocket_frames import CLOSE, CONTINUATION, PING, PONG, TEXT, mask_payload

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
Script = Callable[[socket.socket], None]


@contextmanager
def server(script: Script, upgrade: bool = True) -> Iterator[str]:
    """Takes one connection, upgrades it, then does what the script says."""
    listener = listening()
    faults: list[BaseException] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(WAIT_S)
            try:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(65536)
                if upgrade:
                    connection.sendall(accepting(request))
                script(connection)
            except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
                faults.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join(WAIT_S)
        listener.close()
    assert not faults


def accepting(request: bytes) -> bytes:
    key = request.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0]
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    return b"HTTP/1.1 101 X\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"


def client_frame(connection: socket.socket) -> tuple[int, bytes]:
    """Reads one short frame of the client."""
    head = connection.recv(2, socket.MSG_WAITALL)
    mask = connection.recv(4, socket.MSG_WAITALL)
    size = head[1] & 0x7F
    payload = connection.recv(size, socket.MSG_WAITALL) if size else b""
    return head[0] & 0x0F, mask_payload(payload, mask)


def test_messages_both_ways_and_pings_answered() -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(server_frame(TEXT, b"one"))
        connection.sendall(server_frame(PING, b"p") + server_frame(TEXT, "zw\u00f6".encode()))
        assert client_frame(connection) == (PONG, b"p")
        assert client_frame(connection) == (TEXT, b"hello")
        assert client_frame(connection) == (CLOSE, (1000).to_bytes(2, "big"))

    with server(script) as url:
        link = WebSocket.connect(url, WAIT_S, 1000)
        assert link.receive(WAIT_S) == "one"
        assert link.receive(WAIT_S) == "zw\u00f6"
        link.send("hello")
        link.close()
        link.close()


def test_what_comes_with_the_upgrade_is_not_lost() -> None:
    listener = listening()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            request = connection.recv(65536)
            connection.sendall(accepting(request) + server_frame(TEXT, b"early"))
            connection.recv(100)

    thread = threading.Thread(target=serve)
    thread.start()
    link = WebSocket.connect(f"ws://127.0.0.1:{listener.getsockname()[1]}", WAIT_S, 1000)
    assert link.receive(WAIT_S) == "early"
    link.close()
    thread.join(WAIT_S)
    listener.close()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "closed the connection"),
        (server_frame(CLOSE, (1012).to_bytes(2, "big") + b"restarting"), "code 1012"),
        (server_frame(CLOSE, b""), "code 1005"),
        (server_frame(TEXT, b"\xff"), "not UTF-8"),
        (server_frame(TEXT, b"x" * 2000), "larger than 1000"),
        (server_frame(CONTINUATION, b"x"), "continuation of nothing"),
    ],
)
def test_an_end_is_a_link_error(data: bytes, reason: str) -> None:
    with (
        server(lambda connection: connection.sendall(data)) as url,
        pytest.raises(LinkError, match=reason),
    ):
        # The bytes may come together with the upgrade, and are refused there then.
        link = WebSocket.connect(url, WAIT_S, 1000)
        with closing(link):
            link.receive(WAIT_S)


def test_silence_is_no_end() -> None:
    go_on = threading.Event()

    def script(connection: socket.socket) -> None:
        go_on.wait(WAIT_S)
        connection.sendall(server_frame(TEXT, b"late"))

    with server(script) as url:
        link = WebSocket.connect(url, WAIT_S, 1000)
        with pytest.raises(ReceiveTimeout):
            link.receive(0.02)
        go_on.set()
        assert link.receive(WAIT_S) == "late"
        link.close()


def test_no_upgrade_no_link() -> None:
    refusal = b"HTTP/1.1 404 Not Found\r\n\r\n"
    with (
        server(lambda connection: connection.sendall(refusal), upgrade=False) as url,
        pytest.raises(LinkError, match="404 Not Found"),
    ):
        WebSocket.connect(url, WAIT_S, 1000)


def test_an_upgrade_that_never_comes_has_a_deadline() -> None:
    done = threading.Event()

    def script(_: socket.socket) -> None:
        done.wait(WAIT_S)

    with server(script, upgrade=False) as url:
        with pytest.raises(LinkError, match="timed out"):
            WebSocket.connect(url, 0.05, 1000)
        done.set()


@pytest.mark.parametrize("url", ["ws://127.0.0.1:1", "wss://localhost", "http://localhost", "x"])
def test_what_cannot_be_dialled(url: str) -> None:
    with pytest.raises(LinkError):
        WebSocket.connect(url, 1, 1000)
