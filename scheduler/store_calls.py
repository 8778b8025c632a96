"""Blocking store calls of the driver's, in threads of its own, each with a timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from scheduler.clocks import Reading, read_clock
from workers.storage.interface import Store, StoreError

T = TypeVar("T")

STORE_TIMEOUT_S = 60.0
"""One store call of the driver's; a listing may take ten times as long."""

THREADS = 8

STORE_STEP_S = 1.0
"""A store's clock is rounded down to whole seconds, as HTTP has it."""


class StoreCalls:
    """A store, asked from an event loop; whoever makes it calls ``end``."""

    def __init__(
        self, store: Store, timeout_s: float = STORE_TIMEOUT_S, threads: int = THREADS
    ) -> None:
        self.store = store
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="driver-store")

    async def call(self, call: Callable[[], T], timeout_s: float | None = None) -> T:
        """Makes a call.

        Raises:
            StoreError: the store refused, or did not answer in time.
        """
        bound = self._timeout_s if timeout_s is None else min(timeout_s, self._timeout_s)
        return await self._within(call, bound)

    async def listing(self, call: Callable[[], T]) -> T:
        """Makes a call that reads many keys.

        Raises:
            StoreError: the store refused, or did not answer in time.
        """
        return await self._within(call, 10 * self._timeout_s)

    async def read_clock(self) -> Reading | None:
        """The store's clock against ours; None if it has none.

        Raises:
            StoreError: the store refused, or did not answer in time.
        """
        return await self.call(lambda: store_reading(self.store))

    def end(self) -> None:
        """Takes no more calls; those under way are let go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _within(self, call: Callable[[], T], timeout_s: float) -> T:
        running = asyncio.get_running_loop().run_in_executor(self._pool, call)
        try:
            return await asyncio.wait_for(running, timeout_s)
        except TimeoutError as error:
            raise StoreError(f"store {self.store.url}: no answer in {timeout_s:.0f} s") from error


def store_reading(store: Store) -> Reading | None:
    """A store's clock against ours; None if it has none. Blocks.

    Raises:
        StoreError: the store refused.
    """
    asked = time.monotonic()
    told = store.clock()
    if told is None:
        return None
    return read_clock(told, our_s=time.time(), took_s=time.monotonic() - asked, step_s=STORE_STEP_S)
