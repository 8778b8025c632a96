"""One HTTP/1.1 request with a deadline over the whole of it; the door to ``http.client``."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from workers.agent.addresses import dial_host

_READ_BYTES = 64 * 1024

Fault = Literal["connect", "timeout", "broken", "too_large"]


class HttpError(Exception):
    """A request that got no whole answer; ``fault`` says in which way."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class Response(NamedTuple):
    """A whole answer of whatever status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


def post(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    timeout_s: float,
    connect_timeout_s: float = 15.0,
    max_bytes: int = 16 * 1024 * 1024,
) -> Response:
    """Posts ``body`` to an ``http://`` or ``https://`` URL on a connection of its own.

    Raises:
        HttpError: no connection, no answer within ``timeout_s`` seconds, or a broken or too
            large one.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise HttpError("connect", f"{url} is no http:// or https:// URL")
    deadline = time.monotonic() + timeout_s
    connection = _connection(
        parts.scheme, parts.hostname, parts.port, min(connect_timeout_s, timeout_s)
    )
    all_headers = {"Host": parts.netloc, "Connection": "close", **headers}
    try:
        _connect(connection, url)
        return _exchange(connection, parts.path, all_headers, body, deadline, max_bytes)
    except socket.timeout as error:
        raise HttpError("timeout", f"{url} did not answer in {timeout_s:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise HttpError("broken", f"{url}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()


def _connection(
    scheme: str, host: str, port: int | None, timeout_s: float
) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(dial_host(host), port, timeout=timeout_s)
    # Here because it takes time to load, which a trial's own relay does not need.
    from workers.agent.tls import trusting

    # The name itself is dialled: certificates are checked against what is dialled.
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=trusting())


def _connect(connection: http.client.HTTPConnection, url: str) -> None:
    try:
        connection.connect()
    except OSError as error:
        raise HttpError("connect", f"no connection to {url}: {error}") from error


def _exchange(
    connection: http.client.HTTPConnection,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    deadline: float,
    max_bytes: int,
) -> Response:
    wire = connection.sock
    wire.settimeout(max(deadline - time.monotonic(), 0.001))
    connection.request("POST", path, body=body, headers=dict(headers))
    with connection.getresponse() as answer:
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, fields, _read_body(answer, wire, deadline, max_bytes))


def _read_body(
    answer: http.client.HTTPResponse, wire: socket.socket, deadline: float, max_bytes: int
) -> bytes:
    """The whole body; a short one raises ``IncompleteRead``."""
    expected = answer.length
    body = bytearray()
    # From CPython 3.13 on the last piece closes answer and socket; before, an empty one is last.
    while not answer.isclosed():
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise socket.timeout
        wire.settimeout(remaining)
        piece = answer.read1(_READ_BYTES)
        if not piece:
            break
        body += piece
        if len(body) > max_bytes:
            raise HttpError("too_large", f"an answer of more than {max_bytes} bytes")
    if expected is not None and len(body) < expected:
        # read1 tells an early end from a whole body no more than a file does.
        raise http.client.IncompleteRead(bytes(body), expected - len(body))
    return bytes(body)
