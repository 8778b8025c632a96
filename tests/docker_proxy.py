"""A Unix socket in front of the Docker engine that stalls, refuses or drops chosen calls.

Everything else passes as it is: bodies, streams, upgraded connections. It runs in a thread of its
own, so that it goes on whatever the code under test does to its own event loop. Use it by
``DOCKER_HOST``, which the engine's client, and Docker's command line as well, take from the
environment:

    with docker_proxy() as proxy:
        monkeypatch.setenv("DOCKER_HOST", proxy.url)
        proxy.fault("POST", r"/containers/[0-9a-f]+/kill", "swallow")
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ENGINE = "/var/run/docker.sock"
STARTED_S = 10.0
_PIECE = 64 * 1024
_HEAD = 256 * 1024

Fault = Literal["swallow", "silence", "drop", "trickle"]
"""What becomes of a call. ``swallow``: the engine never hears of it, and there is no answer;
``silence``: the engine does it, its answer is kept back; ``drop``: the connection is closed;
``trickle``: the answer comes, a byte a second."""


@dataclass
class _Rule:
    method: re.Pattern[str]
    path: re.Pattern[str]
    fault: Fault
    skip: int
    met: threading.Event = field(default_factory=threading.Event)


class DockerProxy:
    """The socket; made by ``docker_proxy``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls: list[str] = []
        """Every call that came, as ``METHOD /path``, without version and query."""
        self._rules: list[_Rule] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._over: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="docker-proxy", daemon=True)

    @property
    def url(self) -> str:
        """For ``DOCKER_HOST``."""
        return f"unix://{self.path}"

    def fault(self, method: str, path: str, fault: Fault, skip: int = 0) -> threading.Event:
        """From now on calls of this method and path, both whole patterns, have a fault.

        Args:
            method: of HTTP.
            path: without version and query, for example ``/containers/[0-9a-f]+/start``.
            fault: which.
            skip: so many of them pass before.

        Returns:
            What is set once such a call has come.
        """
        rule = _Rule(re.compile(method), re.compile(path), fault, skip)
        self._rules.append(rule)
        return rule.met

    def heal(self) -> None:
        """No further call has a fault; those under way keep theirs."""
        self._rules.clear()

    def start(self) -> None:
        """Returns once it listens."""
        self._thread.start()
        assert self._up.wait(STARTED_S), "the proxy of the Docker engine did not start"

    def close(self) -> None:
        """Drops all connections and ends the thread."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(STARTED_S)
        assert not self._thread.is_alive(), "the proxy of the Docker engine did not end"

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_unix_server(self._connected, self.path, limit=_HEAD)
        self._up.set()
        await self._over.wait()
        server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # this is one
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        up_reader, up_writer = await asyncio.open_unix_connection(ENGINE, limit=_HEAD)
        connection = _Connection(self, reader, writer, up_reader, up_writer)
        try:
            await connection.run()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of both ends is gone, or the test is over
        finally:
            for each in (writer, up_writer):
                each.close()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await each.wait_closed()

    def ruled(self, method: str, path: str) -> Fault | None:
        """Notes a call, and says whether it has a fault."""
        self.calls.append(f"{method} {path}")
        for rule in self._rules:
            if not (rule.method.fullmatch(method) and rule.path.fullmatch(path)):
                continue
            rule.skip -= 1
            if rule.skip < 0:
                rule.met.set()
                return rule.fault
        return None


class _Connection:
    """One client's connection and its own one to the engine; requests come one after another."""

    def __init__(
        self,
        proxy: DockerProxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._up_reader, self._up_writer = up_reader, up_writer
        self._answers: Fault | None = None

    async def run(self) -> None:
        """Until either end hangs up."""
        works: list[Coroutine[Any, Any, None]] = [self._requests(), self._responses()]
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _requests(self) -> None:
        while True:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ", 2)
            path = re.sub(r"^/v[0-9.]+(?=/)", "", target.partition("?")[0])
            fault = self._proxy.ruled(method, path)
            if fault == "drop":
                return
            if fault == "swallow":
                await self._proxy._over.wait()
                return
            self._answers = fault
            self._up_writer.write(head)
            if any(line.lower().startswith("upgrade:") for line in lines):
                await self._pass_everything()
            await self._pass_body(lines)

    async def _pass_body(self, lines: list[str]) -> None:
        headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        if headers.get("transfer-encoding") == "chunked":
            while True:
                size = await self._reader.readuntil(b"\r\n")
                length = int(size.split(b";")[0], 16)
                self._up_writer.write(size + await self._reader.readexactly(length + 2))
                await self._up_writer.drain()
                if length == 0:
                    return
        left = int(headers.get("content-length", "0"))
        while left:
            piece = await self._reader.readexactly(min(left, _PIECE))
            left -= len(piece)
            self._up_writer.write(piece)
            await self._up_writer.drain()

    async def _pass_everything(self) -> None:
        while piece := await self._reader.read(_PIECE):
            self._up_writer.write(piece)
            await self._up_writer.drain()

    async def _responses(self) -> None:
        while piece := await self._up_reader.read(_PIECE):
            if self._answers == "silence":
                await self._proxy._over.wait()
                return
            step = 1 if self._answers == "trickle" else len(piece)
            for place in range(0, len(piece), step):
                self._writer.write(piece[place : place + step])
                await self._writer.drain()
                if self._answers == "trickle":
                    await asyncio.sleep(1.0)


@contextlib.contextmanager
def docker_proxy() -> Iterator[DockerProxy]:
    """A proxy that passes everything, until it is told otherwise."""
    # The path of a socket holds 107 bytes: a test's own folder may be too long.
    with tempfile.TemporaryDirectory(prefix="apiary-test-") as folder:
        proxy = DockerProxy(Path(folder) / "docker.sock")
        proxy.start()
        try:
            yield proxy
        finally:
            proxy.close()
