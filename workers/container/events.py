"""What the engine's event stream says of our containers, brought into the event loop.

One thread reads the stream for the whole node, so that nobody waits on a container in a
thread. Deaths cannot be missed: a container is watched from before it is started, a broken
stream is opened again from before the last event's time on, and after each opening, and every
half minute, the watched containers are compared with the engine's own list (the engine
remembers only the last 256 events, and drops events for a reader that is slow). Events come
about in the order of their times, and not exactly: what came once is known by what it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from workers.container.api import DockerApi, EventSource, MissingError
from workers.container.calls import Calls, Deadline
from workers.container.interface import ContainerError

_KINDS = ("kill", "die", "oom", "destroy", "exec_die")
_RECONCILE_S = 30.0
_OVERLAP_NS = 10**9
"""How much later than its time an event may come: from so far back a stream is opened again."""
_REMEMBERED = 1024
"""Events by which one that comes again is known; the engine itself remembers 256."""
_BACKOFF_S = (0.1, 0.5, 2.0)
_CALL_S = 20.0
_CLOSE_S = 10.0


@dataclass(eq=False)
class Watch:
    """What is known of one container; only the loop's thread touches it."""

    container: str
    ended: asyncio.Future[int | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Its exit code; None if it is gone and nobody saw how."""
    removed: asyncio.Event = field(default_factory=asyncio.Event)
    oom_events: int = 0
    signalled: bool = False
    """Somebody told the engine to kill it, we or others."""

    executions: dict[str, asyncio.Future[int]] = field(default_factory=dict)
    """Exit codes of the commands that run in it beside its first process."""

    def execution(self, execution: str) -> asyncio.Future[int]:
        """The exit code to come of a further command; call it before the command is started."""
        return self.executions.setdefault(execution, asyncio.get_running_loop().create_future())

    def end(self, exit_code: int | None) -> None:
        """Notes the end; the first word holds."""
        if not self.ended.done():
            self.ended.set_result(exit_code)


class EventStream:
    """The stream and its thread. ``open`` first, ``close`` at the end."""

    def __init__(self, api: DockerApi, calls: Calls, label: str) -> None:
        """Watches only containers that carry ``label`` (``key=value``)."""
        self._api = api
        self._calls = calls
        self._label = label
        self._watched: dict[str, Watch] = {}
        self._stop = threading.Event()
        self._source: EventSource | None = None
        self._source_lock = threading.Lock()  # guards _source against close() by the loop
        self._opened = asyncio.Event()
        self._look = asyncio.Event()
        self._last_error: ContainerError | None = None
        self._thread = threading.Thread(target=self._read, name="docker-events", daemon=True)

    async def open(self, timeout_s: float) -> None:
        """Starts the thread; returns once the stream is open.

        Raises:
            ContainerError: it could not be opened in time.
        """
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._reconciler = asyncio.create_task(self._reconcile_forever())
        try:
            async with asyncio.timeout(timeout_s):
                await self._opened.wait()
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise self._last_error or ContainerError(
                    f"open the Docker event stream: not done within {timeout_s:g} s"
                ) from error
            raise

    @property
    def watched(self) -> int:
        """How many watches there are."""
        return len(self._watched)

    def watch(self, container: str) -> Watch:
        """The watch over a container; call it before the container is started."""
        return self._watched.setdefault(container, Watch(container))

    def watch_from_thread(self, container: str) -> None:
        """Begins a watch, from another thread, ahead of every event that is yet to come.

        Events reach the loop by the same queue, so one that happens after this call is
        handled after it.
        """
        self._loop.call_soon_threadsafe(self.watch, container)

    def forget(self, container: str) -> None:
        """Ends a watch."""
        self._watched.pop(container, None)

    async def close(self) -> None:
        """Ends the stream, its thread and the comparison."""
        self._stop.set()
        with self._source_lock:
            if self._source is not None:
                self._source.close()
        self._reconciler.cancel()
        await asyncio.gather(self._reconciler, return_exceptions=True)
        # A thread that is about to open the stream sees the flag right after.
        deadline = Deadline("end the thread of the Docker event stream", _CLOSE_S)
        await self._calls.run(deadline, lambda d: self._thread.join(d.left_s()))

    def _read(self) -> None:
        """The thread: reads, and opens again what broke."""
        since = datetime.now(UTC).timestamp()
        last_ns = int(since * 1e9)
        seen: deque[tuple[object, ...]] = deque(maxlen=_REMEMBERED)
        failures = 0
        while not self._stop.is_set():
            try:
                from_ns = last_ns - _OVERLAP_NS if seen else last_ns
                stamp = f"{from_ns // 10**9}.{from_ns % 10**9:09d}"
                with self._api.events(stamp, self._label, _KINDS) as source:
                    failures = 0
                    self._enter(source)
                    for event in source:
                        if (identity := _identity(event)) not in seen:
                            seen.append(identity)
                            last_ns = max(last_ns, event["timeNano"])
                            self._loop.call_soon_threadsafe(self._take, event)
            except ContainerError as error:
                self._last_error = error
                failures += 1
            except RuntimeError:  # the loop was closed under us
                return
            finally:
                self._leave()
            self._stop.wait(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])

    def _enter(self, source: EventSource) -> None:
        """Notes the open stream, unless ``close`` came before it."""
        with self._source_lock:
            self._source = source
            if self._stop.is_set():
                source.close()
        self._loop.call_soon_threadsafe(self._opened.set)
        self._loop.call_soon_threadsafe(self._look.set)

    def _leave(self) -> None:
        """Notes the end of a stream."""
        with self._source_lock:
            self._source = None

    def _take(self, event: dict[str, Any]) -> None:
        """One event, in the loop."""
        actor = event["Actor"]
        watch = self._watched.get(actor["ID"])
        if watch is None:
            return
        if event["Action"] == "oom":
            watch.oom_events += 1
        elif event["Action"] == "kill":
            watch.signalled = True
        elif event["Action"] == "exec_die":
            told = actor["Attributes"]
            execution = watch.executions.get(told.get("execID", ""))
            if execution is not None and not execution.done():
                execution.set_result(int(told.get("exitCode", "-1")))
        elif event["Action"] == "die":
            watch.end(int(actor["Attributes"].get("exitCode", "-1")))
        else:
            watch.end(None)
            watch.removed.set()

    async def _reconcile_forever(self) -> None:
        """Compares with the engine's list after each opening, and now and then."""
        while True:
            try:
                async with asyncio.timeout(_RECONCILE_S):
                    await self._look.wait()
            except TimeoutError:
                pass
            self._look.clear()
            try:
                await self._reconcile()
            except ContainerError as error:
                # The engine is away: the stream's next opening brings us here again.
                self._last_error = error

    async def _reconcile(self) -> None:
        """Ends the watches over containers that do not run, whatever events were lost."""
        before = [watch for watch in self._watched.values() if not watch.ended.done()]
        if not before:
            return
        deadline = Deadline("compare containers with the engine's list", _CALL_S)
        listed = await self._calls.run(
            deadline, lambda d: self._api.listing("containers", [self._label], d.left_s())
        )
        states = {str(item["Id"]): str(item["State"]) for item in listed}
        for watch in before:
            state = states.get(watch.container)
            if state is None:
                watch.end(None)
                watch.removed.set()
            elif state in ("exited", "dead"):
                await self._end_by_inspection(watch)

    async def _end_by_inspection(self, watch: Watch) -> None:
        """Takes the exit code from the engine's record of an ended container."""
        deadline = Deadline(f"inspect container {watch.container[:12]}", _CALL_S)
        try:
            told = await self._calls.run(
                deadline, lambda d: self._api.inspect(watch.container, d.left_s())
            )
        except MissingError:
            watch.end(None)
            watch.removed.set()
            return
        watch.end(int(told["State"]["ExitCode"]))


def _identity(event: dict[str, Any]) -> tuple[object, ...]:
    """What tells an event from every other."""
    actor = event["Actor"]
    return event["timeNano"], event["Action"], actor["ID"], actor["Attributes"].get("execID")
