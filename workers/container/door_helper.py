"""The door as a process of its own, for workers without privilege: ``python -m`` this module.

It runs as root beside the Docker engine (in Kubernetes: in the pod with dockerd) and does two
acts for local users who may ask: it opens a listening socket inside a container, and it kills
everything in one but the first process. It acts on containers of Apiary alone, which it asks the
engine about itself: a client can name nothing else, and no process at all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import functools
import logging
import os
import signal
import socket
import stat
import struct
import sys
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from workers.container import door, door_wire, ownership
from workers.container.api import DockerApi, MissingError
from workers.container.calls import Calls, Deadline
from workers.container.door_wire import Request, WireError
from workers.container.interface import ContainerError, ContainerLostError

_log = logging.getLogger("door")

_THREADS = 16
_REQUEST_S = 5.0
"""A client that has connected must have asked by then, and taken its answer as fast."""
_ENGINE_S = 10.0
_CLOSE_S = 5.0
_WAITING = 128
"""Connections that have not asked yet; one more ends the oldest of them, so that nobody can
keep others out by being slow."""
_CREDENTIALS = struct.Struct("3i")


class HelperError(Exception):
    """The helper cannot start; the message says why."""


class DoorHelper:
    """Serves the door on a Unix socket to some users of this machine."""

    def __init__(self, api: DockerApi, uids: Collection[int]) -> None:
        self._api = api
        self._uids = frozenset(uids)
        self._calls = Calls(_THREADS, "door-call")
        self._waiting: OrderedDict[asyncio.Task[None], None] = OrderedDict()
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Answers until ``stop`` is set; what was begun is ended, what waits is not."""
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set():
                accepting = asyncio.ensure_future(loop.sock_accept(listener))
                await asyncio.wait({accepting, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if not accepting.done():
                    accepting.cancel()
                    break
                try:
                    link, _ = accepting.result()
                except OSError as error:  # no descriptor is left, or the peer is gone already
                    _log.warning("accept: %s", error)
                    await asyncio.wait({stopped}, timeout=0.1)
                    continue
                self._take(link)
        finally:
            for task in list(self._waiting):
                task.cancel()
            if self._serving:
                await asyncio.wait(self._serving, timeout=_CLOSE_S)
            stopped.cancel()
            await self._calls.close()

    def _take(self, link: socket.socket) -> None:
        """Begins to serve a connection."""
        task = asyncio.create_task(self._serve_one(link))
        self._serving.add(task)
        self._waiting[task] = None
        task.add_done_callback(functools.partial(self._ended, link))
        if len(self._waiting) > _WAITING:
            oldest, _ = self._waiting.popitem(last=False)
            oldest.cancel()

    def _ended(self, link: socket.socket, task: asyncio.Task[None]) -> None:
        link.close()
        self._serving.discard(task)
        self._waiting.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a connection ended badly", exc_info=error)

    async def _serve_one(self, link: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        link.setblocking(False)
        _, uid, _ = _CREDENTIALS.unpack(
            link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        listener: socket.socket | None = None
        try:
            # Read first: what is closed with a line unread loses its answer.
            line = await self._line(link)
            self._waiting.pop(_this_task(), None)
            if uid not in self._uids:
                raise ContainerError(f"uid {uid} may not ask")
            request = door_wire.read_request(line)
            listener, answer = await self._do(request)
        except (ContainerError, WireError) as error:
            answer = door_wire.write_fault(error)
        except (OSError, TimeoutError):  # the client is gone, or does not ask
            return
        try:
            if listener is not None:
                # Of a new connection's buffer this takes a part, so it does not block.
                socket.send_fds(link, [answer], [listener.fileno()])
                return
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_REQUEST_S):
                    await loop.sock_sendall(link, answer)
        except OSError as error:
            _log.info("the client of a listener is gone: %s", error)
        finally:
            if listener is not None:
                listener.close()

    async def _line(self, link: socket.socket) -> bytes:
        """The request's line.

        Raises:
            WireError: it is too long.
            TimeoutError: it did not come in time.
        """
        loop = asyncio.get_running_loop()
        data = b""
        async with asyncio.timeout(_REQUEST_S):
            while not data.endswith(b"\n"):
                piece = await loop.sock_recv(link, door_wire.REQUEST_BYTES + 1)
                data += piece
                if not piece:
                    raise ConnectionResetError("the client hung up")
                if len(data) > door_wire.REQUEST_BYTES:
                    raise WireError(f"a request has at most {door_wire.REQUEST_BYTES} bytes")
        return data

    async def _do(self, request: Request) -> tuple[socket.socket | None, bytes]:
        what = f"{request.act} in container {request.container[:12]}"
        deadline = Deadline(what, _ENGINE_S + request.timeout_s)
        if request.act == "listen":
            listener = await self._calls.run(deadline, lambda d: self._listen(request, d))
            return listener, door_wire.write_answer()
        done = await self._calls.run(
            deadline,
            lambda d: door.kill_all(self._first(request, d), request.container, request.timeout_s),
        )
        return None, door_wire.write_answer(done)

    def _listen(self, request: Request, deadline: Deadline) -> socket.socket:
        return door.listen(self._first(request, deadline), request.container, request.port)

    def _first(self, request: Request, deadline: Deadline) -> int:
        """The first process of a container of ours, as the engine tells it.

        Raises:
            ContainerError: it is not there, does not run, or is none of Apiary's.
        """
        what = f"{request.act} in container {request.container[:12]}"
        try:
            told = self._api.inspect(request.container, deadline.left_s())
        except MissingError as error:
            raise ContainerLostError(f"{what}: the engine has none") from error
        labels = told["Config"]["Labels"] or {}
        if told["Id"] != request.container or not {ownership.OWNER, ownership.ENGINE} <= set(
            labels
        ):
            raise ContainerError(f"{what}: it is none of Apiary's")
        pid = int(told["State"]["Pid"])
        if pid == 0:
            raise ContainerLostError(f"{what}: it does not run")
        return pid


@contextlib.contextmanager
def opened(path: Path, *, shared: bool) -> Iterator[socket.socket]:
    """A listening Unix socket, removed in the end; what a dead helper left is replaced.

    Args:
        path: where; a lock file beside it tells a dead helper from a living one.
        shared: whether other users than this one may connect.

    Raises:
        HelperError: another helper serves there, or the place cannot be used.
    """
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise HelperError(f"{path}.lock: {error.strerror}") from error
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HelperError(f"{path}: another door helper serves there") from error
        try:
            _bind(listener, path, shared)
        except OSError as error:
            raise HelperError(f"{path}: {error.strerror or error}") from error
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)
    finally:
        listener.close()
        os.close(lock)


def _bind(listener: socket.socket, path: Path, shared: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise HelperError(f"{path}: there is something that is no socket")
        path.unlink()
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    if shared:
        path.chmod(0o666)  # whoever connects is asked for credentials all the same
    listener.listen(_WAITING)


async def run(path: Path, uids: Collection[int]) -> None:
    """Serves until SIGTERM or SIGINT.

    Raises:
        HelperError: the socket cannot be had.
        ContainerError: the engine cannot be reached.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    api = await asyncio.to_thread(DockerApi, _THREADS)
    with contextlib.closing(api), opened(path, shared=set(uids) != {os.geteuid()}) as listener:
        _log.info("the door is open at %s for uids %s", path, sorted(uids))
        await DoorHelper(api, uids).serve(listener, stop)


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None  # only ever called in one
    return task


def main(arguments: Sequence[str] | None = None) -> int:
    """The program. 0: it was told to end, 1: it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m workers.container.door_helper", description=__doc__
    )
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket")
    parser.add_argument(
        "--allow-uid",
        type=int,
        action="append",
        default=[],
        help="a user who may ask, beside this process's own; repeatable",
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="door: %(message)s", stream=sys.stderr)
    try:
        asyncio.run(run(given.socket.absolute(), {os.geteuid(), *given.allow_uid}))
    except (HelperError, ContainerError) as error:
        _log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
