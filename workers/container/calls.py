"""A bounded pool of threads for short blocking calls, each under a deadline.

Why not asyncio's own pool: it has few threads, everything else in the process shares it, and a
call that hangs there starves the rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from workers.container.interface import ContainerError

T = TypeVar("T")

GRACE_S = 1.0
"""How long the loop waits past a deadline for the thread, which watches the same deadline."""


class CallTimeoutError(ContainerError):
    """A call did not end within its time; whether it took effect is not known."""


class Deadline:
    """A point in monotonic time, and what it was set for."""

    def __init__(self, what: str, timeout_s: float) -> None:
        self.what = what
        self.timeout_s = timeout_s
        self._began = time.monotonic()
        self._ends = self._began + timeout_s

    def left_s(self) -> float:
        """Seconds left, more than zero.

        Raises:
            CallTimeoutError: none is left.
        """
        left = self._ends - time.monotonic()
        if left <= 0:
            raise CallTimeoutError(self.fired())
        return left

    def fired(self) -> str:
        """What was not done, by which bound, and how long it was really waited for."""
        ran = time.monotonic() - self._began
        return f"{self.what}: not done within {self.timeout_s:g} s (waited {ran:.1f} s)"

    def passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._ends


class Calls:
    """The pool. Its owner closes it after the last call."""

    def __init__(self, threads: int, name: str = "docker-call") -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def run(self, deadline: Deadline, call: Callable[[Deadline], T]) -> T:
        """What ``call`` returns or raises, run in a thread; waiting for a thread counts.

        The call gets the deadline and must ask it before each blocking step. A caller that
        is cancelled, or whose deadline passes, leaves a running call to end by itself.

        Raises:
            CallTimeoutError: the deadline passed.
        """
        return await self.wait(self.submit(deadline, call), deadline)

    def submit(self, deadline: Deadline, call: Callable[[Deadline], T]) -> Future[T]:
        """Queues a call; for callers that must know how it ended after they gave up."""

        def job() -> T:
            deadline.left_s()
            return call(deadline)

        return self._pool.submit(job)

    async def wait(self, job: Future[T], deadline: Deadline) -> T:
        """A queued call's result.

        Raises:
            CallTimeoutError: the deadline passed.
        """
        try:
            async with asyncio.timeout(max(0.0, deadline.left_s()) + GRACE_S):
                return await asyncio.wrap_future(job)
        except TimeoutError as error:
            raise CallTimeoutError(deadline.fired()) from error

    async def close(self) -> None:
        """Refuses new calls, drops those not begun, and lets the running ones end.

        They end by their own deadlines, so the threads are not joined here for longer than
        the loop can afford: a hung engine must not hang the node.
        """
        self._pool.shutdown(wait=False, cancel_futures=True)
