"""A started container of the Docker engine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any, NamedTuple

from workers.container import cgroup, door
from workers.container.api import ConflictError, DockerApi, MissingError
from workers.container.calls import Calls, Deadline
from workers.container.events import EventStream, Watch
from workers.container.interface import ContainerError, ContainerLostError, ExitState

_PROOF_S = 5.0
_LOOK_S = 1.0
"""How long the event of a killed container's end may take before the engine is asked."""
_OUTPUT_BYTES = 8 * 1024
_OUTPUT_LINES = 1000
_SIGKILLED = 128 + 9


class Started(NamedTuple):
    """What starting a container told."""

    id: str
    pid: int
    oom_counter: Path | None


class DockerContainer:
    """A started container of a ``DockerEngine``, which made it."""

    def __init__(
        self, started: Started, watch: Watch, api: DockerApi, calls: Calls, events: EventStream
    ) -> None:
        self.id = started.id
        self._pid = started.pid
        self._oom_counter = started.oom_counter
        self._oom_last = 0
        self._watch = watch
        self._api = api
        self._calls = calls
        self._events = events
        self._state: ExitState | None = None
        self._killed = False

    def listen(self, port: int) -> socket.socket:
        """See ``Container``; the caller owns the socket."""
        if self._watch.ended.done() or self._pid == 0:
            raise ContainerLostError(
                f"listen on port {port} in container {self.id[:12]}: it has ended"
            )
        return door.listen(self._pid, self.id, port)

    async def ended(self, timeout_s: float) -> ExitState | None:
        """See ``Container``.

        Raises:
            ContainerLostError: it is gone, and nobody saw how it ended.
        """
        if not self._watch.ended.done():
            await asyncio.wait([self._watch.ended], timeout=timeout_s)
        return await self._exit_state() if self._watch.ended.done() else None

    async def kill(self, timeout_s: float) -> ExitState:
        """See ``Container``. The proof: PID 1's exit ends its whole PID namespace."""
        deadline = Deadline(f"kill container {self.id[:12]}", timeout_s)
        self.oom_events()  # the counter dies with the container
        if not self._watch.ended.done():
            self._killed = True
            # "Not running" and "no such container" are found by the proof.
            with contextlib.suppress(ConflictError, MissingError):
                await self._calls.run(deadline, lambda d: self._api.kill(self.id, d.left_s()))
            await self._prove_end(deadline)
        return await self._exit_state()

    def oom_events(self) -> int:
        """See ``Container``."""
        counted = cgroup.oom_kills(self._oom_counter) if self._oom_counter else None
        self._oom_last = max(self._oom_last, counted or 0, self._watch.oom_events)
        return self._oom_last

    async def remove(self, timeout_s: float) -> None:
        """See ``Container``.

        Raises:
            ContainerError: it could not be removed in time.
        """
        deadline = Deadline(f"remove container {self.id[:12]}", timeout_s)
        try:
            await self._calls.run(deadline, lambda d: self._api.remove(self.id, d.left_s()))
        except MissingError:
            pass
        except ConflictError:  # somebody else is removing it
            await self._wait_until_removed(deadline)
        self._watch.removed.set()
        self._events.forget(self.id)

    async def output(self, timeout_s: float) -> str:
        """The end of what it wrote to standard output and standard error, 8 KiB at most."""
        deadline = Deadline(f"read the output of container {self.id[:12]}", timeout_s)
        data = await self._calls.run(
            deadline, lambda d: self._api.output(self.id, _OUTPUT_LINES, d.left_s())
        )
        return data[-_OUTPUT_BYTES:].decode(errors="replace")

    async def _exit_state(self) -> ExitState:
        """How it ended, once its watch has ended."""
        if self._state is None:
            exit_code = self._watch.ended.result()
            if exit_code is None:
                raise ContainerLostError(
                    f"container {self.id[:12]} is gone, removed by somebody else"
                )
            oom_killed = self.oom_events() > 0
            if exit_code == _SIGKILLED and not self._killed and not oom_killed:
                # The event of an OOM kill may come after that of the death.
                oom_killed = await self._flagged_oom()
            self._state = ExitState(exit_code, oom_killed)
        return self._state

    async def _flagged_oom(self) -> bool:
        """Docker's own flag for an OOM kill."""
        record = await self._record(Deadline(f"inspect container {self.id[:12]}", _PROOF_S))
        return record is not None and bool(record["OOMKilled"])

    async def _prove_end(self, deadline: Deadline) -> None:
        """Waits for the event of the end, and asks for the engine's record if it is late.

        Raises:
            ContainerError: by the record it runs, up to the deadline.
        """
        said = "the engine was not asked"
        while not self._watch.ended.done():
            if deadline.passed():
                raise ContainerError(
                    f"{deadline.what}: not proved within {deadline.timeout_s:g} s: {said}"
                )
            await asyncio.wait([self._watch.ended], timeout=min(_LOOK_S, deadline.left_s()))
            if not self._watch.ended.done():
                record = await self._record(deadline)
                if record is None:
                    self._watch.end(None)
                elif not record["Running"] and record["Pid"] == 0:
                    self._watch.end(int(record["ExitCode"]))
                else:
                    said = f"the engine says {record['Status']} with pid {record['Pid']}"

    async def _record(self, deadline: Deadline) -> Any:
        """The engine's record of its state, None if it knows no such container."""
        try:
            told = await self._calls.run(deadline, lambda d: self._api.inspect(self.id, d.left_s()))
        except MissingError:
            return None
        return told["State"]

    async def _wait_until_removed(self, deadline: Deadline) -> None:
        """Waits for the end of a removal in progress, by its event or by asking."""
        while not self._watch.removed.is_set() and await self._record(deadline) is not None:
            if deadline.passed():
                raise ContainerError(f"{deadline.what}: another removal of it does not end")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK_S, deadline.left_s())):
                    await self._watch.removed.wait()
