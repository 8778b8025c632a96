"""Serves the ``buzz`` command to processes of this container, over a Unix socket.

Loading ``nostr_sdk`` costs many times what a command does, so the command itself is a thin
client (``buzz_client``) of the agent's process, which has loaded it. The socket gives nobody a
right: the client sends the key from its own environment. It is an abstract one and leaves no file.

A request is a length of four bytes (big-endian) and that many bytes: NUL-parted texts, the
working directory, the number of variables, the variables as ``name=value``, the arguments. An
answer is a row of frames, each a letter, a length of four bytes and data: ``I`` asks for the
standard input (answered by a length and the data), ``O`` and ``E`` are output and errors, ``X``
ends it with the exit code as text.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from workers.agent import journal
from workers.agent.commands.call import Call
from workers.agent.commands.program import run

SOCKET_VARIABLE = "APIARY_BUZZ_SOCKET"
MAX_REQUEST_BYTES = 4 * 1024 * 1024
MAX_STDIN_BYTES = 16 * 1024 * 1024
TIMEOUT_S = 600.0
_BIN = Path("/opt/apiary/bin")


class CommandServer:
    """A listening socket of a name that nobody else has."""

    def __init__(self) -> None:
        self._name = f"apiary-buzz-{os.getpid()}-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(f"\0{self._name}")
        self._socket.listen(64)
        self._closed = False

    @property
    def bin_directory(self) -> str:
        """The folder with the ``buzz`` command, for the front of a PATH."""
        return str(_BIN if _BIN.joinpath("buzz").exists() else Path(__file__).parent)

    def variables(self) -> Mapping[str, str]:
        """What the command needs in its environment to find us."""
        return {
            SOCKET_VARIABLE: self._name,
            "APIARY_PYTHON": sys.executable,
            "APIARY_BUZZ_CLIENT": str(Path(__file__).with_name("buzz_client.py")),
        }

    def serve(self) -> None:
        """Accepts until it is closed; each command runs in a thread of its own."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                raise
            try:
                threading.Thread(target=_serve_one, args=(connection,), daemon=True).start()
            except RuntimeError:
                # The container's limit of threads is reached; the command says it got no answer.
                connection.close()

    def close(self) -> None:
        """Stops listening; ``serve`` returns."""
        self._closed = True
        with suppress(OSError):
            # Closing alone would leave the thread that accepts where it is.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _serve_one(connection: socket.socket) -> None:
    with connection:
        try:
            connection.settimeout(TIMEOUT_S)
            _answer(connection)
        except (OSError, ValueError) as error:
            # A client that went away takes nothing with it.
            journal.write(f"buzz command dropped: {error}")


def _answer(connection: socket.socket) -> None:
    parts = _receive(connection, MAX_REQUEST_BYTES).decode("utf-8", "surrogateescape").split("\0")
    if len(parts) < 2:
        raise ValueError("a request without directory and variables")
    count = int(parts[1])
    variables = dict(pair.split("=", 1) for pair in parts[2 : 2 + count])

    def stdin() -> bytes:
        connection.sendall(_frame(b"I", b""))
        return _receive(connection, MAX_STDIN_BYTES)

    call = Call(parts[2 + count :], variables, parts[0], stdin)
    code = run(call)
    frames = [_frame(b"O", call.output()), _frame(b"E", call.errors())]
    connection.sendall(b"".join(frames) + _frame(b"X", str(code).encode()))


def _frame(letter: bytes, data: bytes) -> bytes:
    return letter + len(data).to_bytes(4, "big") + data


def _receive(connection: socket.socket, limit: int) -> bytes:
    size = int.from_bytes(_exactly(connection, 4), "big")
    if size > limit:
        raise ValueError(f"more than {limit} bytes")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise ValueError("the client ended in the middle of a message")
        data += piece
    return bytes(data)
