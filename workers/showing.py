"""Shows the running trials that somebody follows; the others cost nothing.

A trial leaves a function here that says what there is to see of it. While the driver names its
attempt, a task of the node's calls it about once a second and a thread writes the document to the
store. Faults are counted and forgotten: showing a trial can neither fail it nor hold it up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from workers.contract.live import live_trial_key
from workers.storage.interface import Store, StoreError

PAUSE_S = 1.0
CALL_S = 10.0
UNRENEWED_S = 30.0
"""Without a word of the driver's, until nobody follows anything any more."""
_LOG = logging.getLogger(__name__)

Look = Callable[[int], Callable[[], bytes]]
"""Given the document's number: looks at a trial, in the event loop and at once; what is returned
makes the document, in a thread."""


class Showing:
    """The trials of one node that can be followed; an async context manager."""

    def __init__(self, store: Store, sweep: str, *, pause_s: float = PAUSE_S) -> None:
        """Shows nothing yet."""
        self._store = store
        self._sweep = sweep
        self._pause_s = pause_s
        self._looks: dict[str, Look] = {}
        """By attempt."""
        self._numbers: dict[str, int] = {}
        """By attempt that is shown: the last document's."""
        self._wanted: frozenset[str] = frozenset()
        self._wanted_at = 0.0
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self.faults = 0
        """Documents that could not be made, written or removed."""

    async def __aenter__(self) -> Self:
        """May show from now on."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="showing")
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Removes what is shown; bounded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._wanted = frozenset()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CALL_S):
                await self._remove_others()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def want(self, attempts: tuple[str, ...]) -> None:
        """The driver's word: who is followed; to be renewed."""
        self._wanted = frozenset(attempts)
        self._wanted_at = asyncio.get_running_loop().time()
        if self._wanted or self._numbers:
            self._awake.set()

    @contextmanager
    def of(self, attempt: str, look: Look) -> Iterator[None]:
        """Lets an attempt's trial be seen as long as it is open."""
        self._looks[attempt] = look
        try:
            yield
        finally:
            if self._looks.get(attempt) is look:
                del self._looks[attempt]
                if attempt in self._numbers:
                    self._awake.set()

    @property
    def shown(self) -> Mapping[str, int]:
        """The attempts that are shown, and the number of each one's last document."""
        return dict(self._numbers)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._awake.wait()
            if loop.time() - self._wanted_at > UNRENEWED_S:
                self._wanted = frozenset()
            if not self._wanted and not self._numbers:
                self._awake.clear()
                continue
            for attempt in sorted(self._wanted & self._looks.keys()):
                await self._show(attempt)
            await self._remove_others()
            await asyncio.sleep(self._pause_s)

    async def _show(self, attempt: str) -> None:
        look = self._looks.get(attempt)
        if look is None:
            return
        number = self._numbers.get(attempt, 0) + 1
        try:
            make = look(number)
        except Exception as error:  # noqa: BLE001 - whatever it is, the trial must not suffer from it
            self._failed(attempt, error)
            return
        self._numbers[attempt] = number
        await self._in_thread(
            attempt, lambda: self._store.put(live_trial_key(self._sweep, attempt), make())
        )

    async def _remove_others(self) -> None:
        for attempt in sorted(self._numbers.keys() - (self._wanted & self._looks.keys())):
            key = live_trial_key(self._sweep, attempt)
            if await self._in_thread(attempt, lambda key=key: self._store.delete(key)):  # type: ignore[misc]
                del self._numbers[attempt]

    async def _in_thread(self, attempt: str, call: Callable[[], None]) -> bool:
        assert self._pool is not None  # there is one while the task runs
        try:
            async with asyncio.timeout(CALL_S):
                await asyncio.get_running_loop().run_in_executor(self._pool, call)
        except (StoreError, TimeoutError):
            self.faults += 1
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, the trial must not suffer from it
            self._failed(attempt, error)
            return False
        return True

    def _failed(self, attempt: str, error: Exception) -> None:
        self.faults += 1
        # Its message may quote what a container wrote.
        _LOG.warning("attempt %s cannot be shown: %s", attempt, type(error).__name__)
