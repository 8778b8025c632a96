"""A thread that makes blocking calls one after the other for as long as its owner lives."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class OwnThread:
    """One daemon thread; calls are made in order.

    *Why not a pool's:* Linux kills the processes that Ray started when the thread that started
    them ends (``PR_SET_PDEATHSIG`` is of the thread), so it must live as long as they should;
    and a call that hangs must not keep the interpreter from exiting, as a pool's would.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, function: Callable[[], T], timeout_s: float) -> T:
        """Makes a call and waits for it.

        Raises:
            TimeoutError: it is not over after ``timeout_s`` seconds; it goes on nevertheless.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def settle(setter: Callable[[Any], None], value: Any) -> None:
            if not answer.done():
                setter(value)

        def work() -> None:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
                _tell(loop, settle, answer.set_exception, error)
            else:
                _tell(loop, settle, answer.set_result, result)

        self._calls.put(work)
        return await asyncio.wait_for(answer, timeout_s)

    def end(self) -> None:
        """Ends the thread once the calls made so far are over."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[..., None], *what: Any) -> None:
    try:
        loop.call_soon_threadsafe(settle, *what)
    except RuntimeError:
        # The loop is closed: nobody waits for the answer any more.
        return
