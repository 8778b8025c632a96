from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.workers.agent.worlds import WAIT_S, listening
from workers.agent.http_post import HttpError, post


@contextmanager
def server(answer: bytes, hold: bool = False) -> Iterator[str]:
    """Takes one request and answers some bytes; ``hold`` keeps the connection open."""
    listener = listening()
    done = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while b"\r\n\r\n" not in connection.recv(65536):
                pass
            connection.sendall(answer)
            if hold:
                done.wait(WAIT_S)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        thread.join(WAIT_S)
        listener.close()


def test_a_whole_answer_of_any_status() -> None:
    with server(b"HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno") as url:
        response = post(url + "/p", {"A": "b"}, b"body", timeout_s=WAIT_S)
    assert (response.status, response.headers["retry-after"], response.body) == (429, "7", b"no")


def test_a_chunked_answer() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") as url:
        assert post(url, {}, b"", timeout_s=WAIT_S).body == b"abcde"


@pytest.mark.parametrize(
    ("answer", "hold", "fault"),
    [
        (b"", False, "broken"),
        (b"nonsense\r\n\r\n", False, "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", False, "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", True, "timeout"),
        (b"HTTP/1.1 200 OK\r\n", True, "timeout"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000, False, "too_large"),
    ],
)
def test_no_whole_answer(answer: bytes, hold: bool, fault: str) -> None:
    with server(answer, hold) as url, pytest.raises(HttpError) as caught:
        post(url, {}, b"", timeout_s=0.2 if hold else WAIT_S, max_bytes=1000)
    assert caught.value.fault == fault


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(HttpError) as caught:
            post(url, {}, b"", timeout_s=WAIT_S)
    assert caught.value.fault == "connect"


def test_only_http() -> None:
    with pytest.raises(HttpError, match="no http:// or https:// URL"):
        post("ftp://localhost/", {}, b"", timeout_s=1)
