"""The door that this process has: its own where it may, else a helper's.

Which of the two is found out by trying: privilege, kernel and namespaces are one question to the
kernel, and a list of capabilities would answer only part of it.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from workers.container import door, door_wire
from workers.container.door_wire import Request, WireError
from workers.container.interface import ContainerError, ContainerLostError, Killed, NoDoorError

_PAUSE_S = 0.01
_TIMEOUT_S = 10.0
"""Of a helper's answer, beside what the act itself may take."""


class Doors:
    """The privileged acts, for the containers of one engine."""

    def __init__(self, helper: Path | None = None) -> None:
        """``helper``: the socket of a door helper, None: there is none."""
        self._helper = helper

    def listen(self, pid: int, container: str, port: int) -> socket.socket:
        """A listening socket on the loopback inside a container; the caller owns it.

        Raises:
            ContainerError: as ``door.listen``.
        """
        try:
            return door.listen(pid, container, port)
        except (NoDoorError, ContainerLostError):
            if self._helper is None:
                raise
        listener, _ = self._ask(self._helper, Request("listen", container, port=port), _TIMEOUT_S)
        if listener is None:
            raise ContainerError(f"door helper at {self._helper}: it sent no descriptor")
        return listener

    def kill_all(self, pid: int, container: str, timeout_s: float) -> Killed:
        """Kills everything in a container but its first process.

        Raises:
            ContainerError: as ``door.kill_all``.
        """
        try:
            return door.kill_all(pid, container, timeout_s)
        except (NoDoorError, ContainerLostError):
            if self._helper is None:
                raise
        bound = min(timeout_s, door_wire.MAX_TIMEOUT_S)
        request = Request("kill_all", container, timeout_s=bound)
        listener, done = self._ask(self._helper, request, bound + _TIMEOUT_S)
        if listener is not None:
            listener.close()
        if done is None:
            raise ContainerError(f"door helper at {self._helper}: it did not say what it killed")
        return done

    def _ask(
        self, helper: Path, request: Request, timeout_s: float
    ) -> tuple[socket.socket | None, Killed | None]:
        """One request on a connection of its own."""
        what = f"{request.act} by the door helper at {helper}"
        ends = time.monotonic() + timeout_s
        received: list[int] = []
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(timeout_s)
                _connect(link, helper, ends)
                link.sendall(door_wire.write_request(request))
                line = _line(link, received, ends)
            done = door_wire.read_answer(line, request.act)
            return (socket.socket(fileno=received.pop(0)) if received else None), done
        except OSError as error:
            raise NoDoorError(f"{what}: {error.strerror or error}") from error
        except WireError as error:
            raise ContainerError(f"{what}: {error}") from error
        finally:
            for descriptor in received:
                os.close(descriptor)


def _connect(link: socket.socket, helper: Path, ends: float) -> None:
    """Connects; a Unix socket whose queue is full refuses at once instead of waiting."""
    while True:
        try:
            link.connect(str(helper))
            return
        except BlockingIOError:
            if time.monotonic() >= ends:
                raise
            time.sleep(_PAUSE_S)


def _line(link: socket.socket, received: list[int], ends: float) -> bytes:
    """The answer's bytes; descriptors that come along are put into ``received``."""
    data = b""
    while not data.endswith(b"\n"):
        left = ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        link.settimeout(left)
        piece, descriptors, _, _ = socket.recv_fds(link, 64 * 1024, 4)
        received.extend(descriptors)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        if not piece or len(data) + len(piece) > door_wire.ANSWER_BYTES:
            raise WireError("the answer ends early, or is too long")
        data += piece
    return data
