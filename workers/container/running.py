"""A started container of the Docker engine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workers.container import cgroup
from workers.container.api import ConflictError, DockerApi, MissingError
from workers.container.calls import Calls, CallTimeoutError, Deadline
from workers.container.doors import Doors
from workers.container.events import EventStream, Watch
from workers.container.interface import (
    ContainerError,
    ContainerLostError,
    ContainerTimeoutError,
    ExitState,
    Killed,
    Process,
)

_PROOF_S = 5.0
_LOOK_S = 1.0
"""How long the event of a killed container's end may take before the engine is asked."""
_START_S = 60.0
"""How long the engine may take to start one more command."""
_LOOK_EXECUTION_S = 5.0
"""How long the event of a command's end may take before the engine is asked."""
FLAG_S = 1.0
"""How long after a container's end the engine may take to flag an OOM kill."""
_FLAG_LOOK_S = 0.1
_HEAD_BYTES = 4 * 1024
_TAIL_BYTES = 8 * 1024
_SIGKILLED = 128 + 9


class Started(NamedTuple):
    """What starting a container told."""

    id: str
    pid: int
    oom_counter: Path | None
    layer: Path | None = None


class DockerContainer:
    """A started container of a ``DockerEngine``, which made it."""

    def __init__(
        self,
        started: Started,
        watch: Watch,
        api: DockerApi,
        calls: Calls,
        events: EventStream,
        give_up: Callable[[str], None] = lambda _: None,
        doors: Doors | None = None,
    ) -> None:
        self.id = started.id
        self.layer = started.layer
        self._give_up = give_up
        self._pid = started.pid
        self._oom_counter = started.oom_counter
        self._oom_last = 0
        self._limit_reached: bool | None = None
        self._watch = watch
        self._api = api
        self._calls = calls
        self._events = events
        self._doors = doors or Doors()
        self._state: ExitState | None = None
        self._killed = False

    def listen(self, port: int) -> socket.socket:
        """See ``Container``; the caller owns the socket."""
        self._check_running(f"listen on port {port} in container {self.id[:12]}")
        return self._doors.listen(self._pid, self.id, port)

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
        # The counters die with the container.
        self.oom_events()
        self.memory_limit_reached()
        if not self._watch.ended.done():
            self._killed = True
            # "Not running" and "no such container" are found by the proof.
            with contextlib.suppress(ConflictError, MissingError):
                await self._calls.run(deadline, lambda d: self._api.kill(self.id, d.left_s()))
            await self._prove_end(deadline)
        return await self._exit_state()

    async def kill_all(self, timeout_s: float) -> Killed:
        """See ``Container``."""
        deadline = Deadline(f"kill everything in container {self.id[:12]}", timeout_s)
        self._check_running(deadline.what)
        return await self._calls.run(
            deadline, lambda d: self._doors.kill_all(self._pid, self.id, d.left_s())
        )

    async def restart(self, timeout_s: float) -> tuple[Process, ...]:
        """See ``Container``."""
        deadline = Deadline(f"restart container {self.id[:12]}", timeout_s)
        await self.kill(deadline.left_s())
        # Watched anew only once it runs: until then the engine's list still says that it ended.
        self._events.forget(self.id)
        await self._calls.run(deadline, lambda d: self._api.start(self.id, d.left_s()))
        self._watch, self._state, self._killed = self._events.watch(self.id), None, False
        record = await self._record(deadline)
        if record is None or not record["Running"]:
            self._watch.end(None if record is None else int(record["ExitCode"]))
            raise ContainerLostError(f"{deadline.what}: it ended as soon as it had started")
        self._pid = int(record["Pid"])
        self._oom_counter = cgroup.counter_file(self._pid, self.id)
        return await self.processes(deadline.left_s())

    async def signal(self, name: str, timeout_s: float) -> None:
        """See ``Container``."""
        deadline = Deadline(f"send SIG{name} to container {self.id[:12]}", timeout_s)
        await self._calls.run(deadline, lambda d: self._api.kill(self.id, d.left_s(), name))

    async def processes(self, timeout_s: float) -> tuple[Process, ...]:
        """See ``Container``: from its control group if that can be seen, else from the engine."""
        deadline = Deadline(f"list the processes of container {self.id[:12]}", timeout_s)
        self._check_running(deadline.what)
        try:
            found = await self._calls.run(deadline, self._list)
        except (ConflictError, MissingError) as error:
            raise ContainerLostError(f"{deadline.what}: it has ended") from error
        if not any(process.pid == self._pid for process in found):
            raise ContainerLostError(f"{deadline.what}: its first process is gone")
        return found

    def _list(self, deadline: Deadline) -> tuple[Process, ...]:
        group = cgroup.group_of(self._pid, self.id, "freezer")
        if group is not None:
            return tuple(group.processes())
        return tuple(
            Process(int(pid), int(parent), command)
            for pid, parent, command in self._api.top(self.id, deadline.left_s())
            if not command.endswith(" <defunct>")
        )

    async def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str | None],
        timeout_s: float,
        user: str = "",
    ) -> int:
        """See ``Container``. The end comes as an event, and is asked for now and then.

        Its time begins when it has been started: what the engine takes until then is not its own.
        """
        what = f"run {command[0]} in container {self.id[:12]}"
        deadline = Deadline(what, max(timeout_s, _START_S))
        self._check_running(what)
        execution = await self._calls.run(
            deadline, lambda d: self._api.prepare(self.id, command, environment, d.left_s(), user)
        )
        ended = self._watch.execution(execution)
        either: set[asyncio.Future[Any]] = {ended, self._watch.ended}
        try:
            await self._calls.run(deadline, lambda d: self._api.execute(execution, d.left_s()))
            deadline = Deadline(what, timeout_s)
            exit_code = None
            while exit_code is None:
                if deadline.passed():
                    raise ContainerTimeoutError(
                        f"{deadline.what}: it did not end within {timeout_s:g} s"
                    )
                with contextlib.suppress(CallTimeoutError):
                    bound = min(_LOOK_EXECUTION_S, deadline.left_s())
                    await asyncio.wait(either, timeout=bound, return_when=asyncio.FIRST_COMPLETED)
                    exit_code = await self._exit_code(execution, ended, deadline)
            return exit_code
        finally:
            self._watch.executions.pop(execution, None)

    async def _exit_code(
        self, execution: str, ended: asyncio.Future[int], deadline: Deadline
    ) -> int | None:
        """How a command ended, None if it has not.

        Raises:
            ContainerLostError: the container ended, and the command with it.
        """
        self._check_running(deadline.what)
        if not ended.done():
            return await self._calls.run(
                deadline, lambda d: self._api.exit_code(execution, d.left_s())
            )
        if ended.result() == _SIGKILLED:
            # Where the container is killed, the ends of its commands are told before its own.
            await asyncio.wait({self._watch.ended}, timeout=_LOOK_S)
            self._check_running(deadline.what)
        return ended.result()

    def _check_running(self, what: str) -> None:
        if self._watch.ended.done() or self._pid == 0:
            raise ContainerLostError(f"{what}: it has ended")

    def oom_events(self) -> int:
        """See ``Container``."""
        counted = cgroup.oom_kills(self._oom_counter) if self._oom_counter else None
        self._oom_last = max(self._oom_last, counted or 0, self._watch.oom_events)
        return self._oom_last

    def memory_limit_reached(self) -> bool | None:
        """See ``Container``."""
        seen = cgroup.limit_reached(self._oom_counter) if self._oom_counter else None
        self._limit_reached = self._limit_reached if seen is None else seen
        return self._limit_reached

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
        except CallTimeoutError as error:
            self._give_up(self.id)
            raise CallTimeoutError(deadline.fired()) from error
        except BaseException:
            self._give_up(self.id)
            raise
        self._watch.removed.set()
        self._events.forget(self.id)

    async def output(self, timeout_s: float) -> str:
        """See ``Container``."""
        deadline = Deadline(f"read the output of container {self.id[:12]}", timeout_s)
        data = await self._calls.run(deadline, lambda d: self._api.output(self.id, d.left_s()))
        return head_and_tail(data)

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
            signalled = self._killed or self._watch.signalled
            self._state = ExitState(exit_code, oom_killed, signalled)
        return self._state

    async def _flagged_oom(self) -> bool:
        """Docker's own flag for an OOM kill; a busy engine sets it after the end is told."""
        deadline = Deadline(f"inspect container {self.id[:12]}", _PROOF_S)
        give_up = time.monotonic() + FLAG_S
        while (record := await self._record(deadline)) is not None:
            if record["OOMKilled"] or self.oom_events() > 0:
                return True
            if time.monotonic() > give_up:
                break
            await asyncio.sleep(_FLAG_LOOK_S)
        return False

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


def head_and_tail(data: bytes) -> str:
    r"""An output as text: its beginning and its end, and what no UTF-8 is as ``\xNN``."""
    dropped = len(data) - _HEAD_BYTES - _TAIL_BYTES
    if dropped <= 0:
        return data.decode(errors="backslashreplace")
    head, tail = data[:_HEAD_BYTES], data[-_TAIL_BYTES:]
    return (
        head.decode(errors="backslashreplace")
        + f"\n[{dropped} bytes left out]\n"
        + tail.decode(errors="backslashreplace")
    )
