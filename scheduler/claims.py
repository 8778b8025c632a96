"""Who drives a sweep: driver generations, claimed in the store, and how one gives way.

*Two drivers of one sweep:* the newer one counts. The older looks for the claim of the next
generation, leases nothing more, gives what runs a lease's term to finish, and ends. The newer
waits for that before it reads the store, so that nothing is paid twice. It need not wait for a
driver on the same cluster, whose nodes it adopts, and waits no longer than it must for one that
is dead.
"""

from __future__ import annotations

import asyncio
import functools
import platform
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from scheduler.claim_format import (
    DriverBeat,
    DriverClaim,
    beat_key,
    claim_key,
    last_generation,
    read_beat,
    read_claim,
    unfinished,
)
from scheduler.errors import DriverClaimError
from scheduler.process import is_gone, this_process
from scheduler.store_calls import StoreCalls
from workers.storage.interface import StoreError

BEAT_S = 5.0
LOOK_S = 20.0
"""How long one beat, or one look for others, may take."""
SILENT_S = 30.0
"""Without a beat, until a driver of another machine counts as dead."""
LOOK_PAUSE_S = 0.5

CLAIMS_AT_MOST = 100
"""Drivers that may claim a generation between our listing and our claim."""


class Watch:
    """Judges from its beats whether a driver is over. Pure but for the process table."""

    def __init__(self, claim: DriverClaim, now: float, silent_s: float = SILENT_S) -> None:
        self._claim = claim
        self._silent_s = silent_s
        self._beat = -1
        self._moved_at = now

    def is_over(self, beat: DriverBeat | None, now: float) -> bool:
        """Whether it has ended or died.

        Args:
            beat: as it stands in the store; None: there is none (yet).
            now: monotonic seconds.
        """
        if beat is not None and beat.ended:
            return True
        if self._claim.process and is_gone(self._claim.process):
            return True
        number = -1 if beat is None else beat.beat
        if number != self._beat:
            self._beat, self._moved_at = number, now
        return now - self._moved_at > self._silent_s


class Claims:
    """The drivers of one sweep, seen by one of them."""

    def __init__(
        self, calls: StoreCalls, sweep: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Claims nothing yet; ``clock`` is monotonic seconds."""
        self._calls = calls
        self._sweep = sweep
        self._clock = clock
        self._beats = 0
        self.own: DriverClaim | None = None
        """Once it is claimed."""

    async def claim(self, ray_address: str | None = None) -> int:
        """Claims the next driver generation; nodes refuse the orders of lower ones.

        Raises:
            DriverClaimError: others were quicker, again and again.
            StoreError: the store refused.
        """
        last = await self._calls.listing(lambda: last_generation(self._calls.store, self._sweep))
        for candidate in range(last + 1, last + 1 + CLAIMS_AT_MOST):
            claim = DriverClaim(
                sweep=self._sweep,
                generation=candidate,
                host=platform.node(),
                started_at=_now(),
                process=this_process(),
                ray_address=ray_address,
            )
            document = claim.to_json().encode() + b"\n"
            key = claim_key(self._sweep, candidate)
            create = functools.partial(self._calls.store.create, key, document)
            if await self._calls.call(create):
                self.own = claim
                return candidate
        raise DriverClaimError(
            f"sweep {self._sweep}: driver generations {last + 1} to {last + CLAIMS_AT_MOST} were "
            "all claimed by others; is the sweep started in a loop?"
        )

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Writes beats while it is open, and the end when it is left; the store may miss some."""
        ending = asyncio.Event()
        beats = asyncio.create_task(self._beat(ending))
        try:
            yield
        finally:
            ending.set()
            # Not cancelled: a beat that is being written could come after the end, and hide it.
            await beats
            await self._sign(ended=True)

    async def newer(self) -> DriverClaim | None:
        """The driver that has taken the sweep over, if there is one; a look at one key.

        Raises:
            StoreError: the store did not answer.
        """
        assert self.own is not None  # claimed before others are looked for
        store, generation = self._calls.store, self.own.generation + 1
        key = claim_key(self._sweep, generation)
        if not await self._calls.call(lambda: store.exists(key), LOOK_S):
            return None
        read = functools.partial(read_claim, store, self._sweep, generation)
        return await self._calls.call(read, LOOK_S)

    async def older(self) -> list[DriverClaim]:
        """The drivers before this one that may still be at work.

        Raises:
            StoreError: the store did not answer.
        """
        assert self.own is not None  # claimed before others are looked for
        store, sweep = self._calls.store, self._sweep
        before = range(1, self.own.generation)
        return await self._calls.listing(lambda: unfinished(store, sweep, before))

    async def wait_for(
        self,
        older: DriverClaim,
        bound_s: float,
        *,
        give_up: Callable[[], bool],
        waiting: Callable[[], None],
    ) -> bool:
        """Waits until an older driver is over; not longer than ``bound_s`` seconds.

        One that died is marked as ended, so that nobody waits for it again. ``waiting`` is
        called before each pause.

        Returns:
            Whether it is over.
        """
        watch = Watch(older, self._clock())
        until = self._clock() + bound_s
        store, generation = self._calls.store, older.generation
        read = functools.partial(read_beat, store, self._sweep, generation)
        while not give_up() and self._clock() <= until:
            with suppress(StoreError):
                # A store that does not answer says nothing about the driver.
                beat = await self._calls.call(read, LOOK_S)
                if watch.is_over(beat, self._clock()):
                    if beat is None or not beat.ended:
                        await self._put(generation, DriverBeat(beat=0, ended=True))
                    return True
            waiting()
            await asyncio.sleep(LOOK_PAUSE_S)
        return False

    async def _beat(self, ending: asyncio.Event) -> None:
        while not ending.is_set():
            await self._sign(ended=False)
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await ending.wait()

    async def _sign(self, *, ended: bool) -> None:
        assert self.own is not None  # claimed before it beats
        self._beats += 1
        await self._put(self.own.generation, DriverBeat(beat=self._beats, ended=ended))

    async def _put(self, generation: int, beat: DriverBeat) -> None:
        document = beat.to_json().encode() + b"\n"
        put = functools.partial(self._calls.store.put, beat_key(self._sweep, generation), document)
        with suppress(StoreError):
            # One that is missing is followed by another; without an end, others wait a little.
            await self._calls.call(put, LOOK_S)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
