"""TLS over a connected socket, for a relay that is not the trial's own; one reads, others write."""

from __future__ import annotations

import enum
import functools
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _Wait(enum.Enum):
    """For what the socket must be ready."""

    READABLE = enum.auto()
    WRITABLE = enum.auto()


@functools.lru_cache(maxsize=1)
def trusting() -> ssl.SSLContext:
    """What the image trusts; ``SSL_CERT_FILE`` names others."""
    return ssl.create_default_context()


class TlsSocket:
    """A socket with TLS that threads may share, as they may share one without.

    CPython's own lets two of them into OpenSSL at once, which OpenSSL forbids. So whoever is inside
    holds a lock, never waits there, and waits for the socket outside of it.
    """

    def __init__(self, connection: socket.socket, host: str, timeout_s: float) -> None:
        """Shakes hands.

        Raises:
            OSError: the other side is not whom the certificate should name, or breaks off.
        """
        connection.settimeout(timeout_s)
        self._socket = trusting().wrap_socket(connection, server_hostname=host)
        self._socket.settimeout(0)
        self._timeout_s: float | None = timeout_s
        self._lock = threading.Lock()

    def settimeout(self, timeout_s: float | None) -> None:
        """How long later calls may take."""
        self._timeout_s = timeout_s

    def recv(self, size: int) -> bytes:
        """What has come in, at most ``size`` bytes; empty at the end."""
        deadline = self._deadline()
        while True:
            got = self._inside(lambda: self._socket.recv(size))
            if not isinstance(got, _Wait):
                return got
            self._wait(got, deadline)

    def sendall(self, data: bytes) -> None:
        """Sends all of it."""
        deadline = self._deadline()
        left = memoryview(data)
        while left:
            sent = self._inside(functools.partial(self._socket.send, left))
            if isinstance(sent, _Wait):
                self._wait(sent, deadline)
            else:
                left = left[sent:]

    def close(self) -> None:
        """Closes the connection without a goodbye."""
        self._socket.close()

    def _deadline(self) -> float | None:
        return None if self._timeout_s is None else time.monotonic() + self._timeout_s

    def _inside(self, act: Callable[[], T]) -> T | _Wait:
        """What OpenSSL does now, or what it must wait for."""
        try:
            with self._lock:
                return act()
        except ssl.SSLWantReadError:
            return _Wait.READABLE
        except ssl.SSLWantWriteError:
            return _Wait.WRITABLE

    def _wait(self, wait: _Wait, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise socket.timeout("timed out")
        waiting = [self._socket]
        readable, writable = (waiting, []) if wait is _Wait.READABLE else ([], waiting)
        if not any(select.select(readable, writable, [], left)):
            raise socket.timeout("timed out")
