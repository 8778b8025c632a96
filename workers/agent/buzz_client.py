"""The ``buzz`` command: hands its arguments to the agent's process and prints what comes back.

Runs as ``python3 -I -S`` in any CPython from 3.9 on. It imports C modules and ``os`` alone, since
an agent calls it many times and each start counts. ``command_server`` words the exchange.
"""

import _socket
import os
import sys

_VARIABLES = (
    "BUZZ_RELAY_URL",
    "BUZZ_PRIVATE_KEY",
    "BUZZ_AUTH_TAG",
    "BUZZ_TIMEOUT_SECS",
    "BUZZ_CONNECT_TIMEOUT_SECS",
)
_UNAVAILABLE = (
    b'{"error": "error", "message": "the agent cannot be reached from here", "retryable": false}\n'
)


def main() -> int:
    """Runs one command and gives its exit code; 4 if there is no agent to run it."""
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        link.connect("\0" + os.environ.get("APIARY_BUZZ_SOCKET", ""))
        _send(link, _request())
        return _follow(link)
    except (OSError, EOFError):
        _write(2, _UNAVAILABLE)
        return 4


def _request() -> bytes:
    try:
        directory = os.getcwd()
    except FileNotFoundError:
        directory = "/"
    variables = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    parts = [directory, str(len(variables)), *variables, *sys.argv[1:]]
    return "\0".join(parts).encode("utf-8", "surrogateescape")


def _follow(link: _socket.socket) -> int:
    while True:
        letter = _exactly(link, 1)
        data = _exactly(link, int.from_bytes(_exactly(link, 4), "big"))
        if letter == b"I":
            _send(link, sys.stdin.buffer.read() if sys.stdin else b"")
        elif letter == b"X":
            return int(data)
        else:
            _write(1 if letter == b"O" else 2, data)


def _send(link: _socket.socket, data: bytes) -> None:
    link.sendall(len(data).to_bytes(4, "big") + data)


def _exactly(link: _socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = link.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise EOFError
        data += piece
    return data


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        # As of any Unix filter: whoever closes our output early ends us quietly.
        sys.exit(141)


if __name__ == "__main__":
    sys.exit(main())
