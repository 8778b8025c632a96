"""Shows a sweep to whoever reaches its store, and hears what they want to look at closely.

An observer of the driver's. It only remembers what it is told; a task of its own writes
``live.json`` every two seconds while something moves, a thread of its own waits for the store, and
a store that refuses is asked again. Nothing here can end a sweep.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import TracebackType
from typing import Protocol, Self

from scheduler.errors import error_text
from scheduler.live_document import Made, Named, Shown, example_of, make_document, same
from scheduler.live_format import (
    DETAIL_MAX,
    EXAMPLES,
    NOTES_SHOWN,
    LiveExample,
    LiveSpending,
    LiveState,
    LiveSweep,
    generation_there,
    live_key,
    read_live,
)
from scheduler.progress import Pace, sweep_view
from scheduler.queue import WorkQueue
from scheduler.store_calls import StoreCalls
from scheduler.view import RunningOn, SweepEnd, SweepView
from scheduler.wishes import Wishes
from workers.contract.live import live_trial_prefix, watched_prefix
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec
from workers.storage.interface import Store, StoreError

PAUSE_S = 2.0
HEARTBEAT_S = 5.0
"""A document is written so often where nothing moves, so that readers know of its driver."""
CALL_S = 20.0
LAST_S = 10.0
"""For the last document and for tidying up."""
TIDIED_AT_MOST = 1000


class PlannedAttempt(Protocol):
    """An attempt of a plan."""

    @property
    def attempt(self) -> str:
        """Its id."""
        ...

    @property
    def cell(self) -> str:
        """Its cell's id."""
        ...

    @property
    def index(self) -> int:
        """Which of the cell's attempts."""
        ...


class LiveView:
    """Publishes one driver's view of its sweep; an observer and an async context manager."""

    def __init__(
        self,
        store: Store,
        sweep: str,
        generation: int,
        name_of: Callable[[str], Named | None],
        *,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Writes nothing yet.

        Args:
            store: where the sweep is.
            sweep: its id.
            generation: of this driver.
            name_of: what an attempt is called.
            pause_s: between two documents.
            clock: monotonic seconds.
        """
        self._sweep = sweep
        self._generation = generation
        self._name_of = name_of
        self._pause_s = pause_s
        self._clock = clock
        # A thread of its own: a store that hangs here keeps nothing else waiting.
        self._calls = StoreCalls(store, CALL_S, threads=1)
        self._wishes = Wishes(sweep, clock)
        self.running: Callable[[], Iterable[RunningOn]] = tuple
        """The tries that run; set once there are nodes."""
        self.end: SweepEnd | None = None
        """How the sweep ended under this driver; set before it is left."""
        self.faults = 0
        """Calls that the store refused."""
        self._view: SweepView | None = None
        self._number = 0
        self._written: LiveSweep | None = None
        self._written_at = 0.0
        self._spending = LiveSpending(complete=generation == 1)
        self._tries: Counter[tuple[str, str]] = Counter()
        self._examples: dict[tuple[str, str], deque[LiveExample]] = {}
        self._notes: deque[str] = deque(maxlen=NOTES_SHOWN)
        self._has_begun = False
        """Whether there has been a node."""
        self._is_first = True
        self._is_obsolete = False
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None]

    @property
    def watched(self) -> tuple[str, ...]:
        """The attempts that somebody looks at."""
        return self._wishes.attempts

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        self._view = view
        self._has_begun = self._has_begun or view.nodes > 0

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        usage, before = record.usage, self._spending
        self._spending = LiveSpending(
            calls=before.calls + usage.calls,
            input_tokens=before.input_tokens + usage.input_tokens,
            output_tokens=before.output_tokens + usage.output_tokens,
            cost_usd=before.cost_usd + usage.cost_usd,
            complete=before.complete and not usage.unknown_cost_calls,
        )
        if record.verdict is Verdict.PASS:
            return
        key = (record.blame.value, record.cause.value)
        self._tries[key] += 1
        newest = self._examples.setdefault(key, deque(maxlen=EXAMPLES))
        newest.appendleft(example_of(record))

    def note(self, text: str) -> None:
        """See ``Observer``."""
        self._notes.append(text[:DETAIL_MAX])

    async def __aenter__(self) -> Self:
        """Begins to publish."""
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Publishes how it ended, and removes what showed single trials; bounded."""
        self._ending.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                await self._task
                await self._last(error)
        self._calls.end()

    async def _run(self) -> None:
        while not self._ending.is_set() and not self._is_obsolete:
            await self._publish("running" if self._has_begun else "starting")
            await self._asked(self._wishes.look)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s):
                    await self._ending.wait()

    async def _last(self, error: BaseException | None) -> None:
        gave_way = self.end is not None and self.end.gave_way
        if self._is_obsolete or gave_way:
            return  # What is there is a newer driver's, or will be.
        state: LiveState = "failed" if self.end is None else self.end.state
        reason = self.end.reason if self.end is not None else error_text(error)
        await self._publish(state, reason[:DETAIL_MAX])
        await self._asked(self._tidy)

    async def _asked(self, call: Callable[[Store], object]) -> None:
        try:
            await self._calls.call(lambda: call(self._calls.store))
        except StoreError:
            self.faults += 1

    async def _publish(self, state: LiveState, reason: str = "") -> None:
        view = self._view
        if view is None:
            return
        now = self._clock()
        is_last = state not in ("starting", "running")
        is_due = is_last or now - self._written_at >= HEARTBEAT_S
        told = {key: (count, tuple(self._examples[key])) for key, count in self._tries.items()}
        shown = Shown(view, tuple(self.running()), told, tuple(self._notes))

        def put(store: Store) -> None:
            self._take_over(store)
            if self._is_obsolete:
                return
            made = Made(self._sweep, self._generation, self._number + 1, state, reason)
            document = make_document(made, shown, self._spending, self._name_of)
            if self._written is None or is_due or not same(document, self._written):
                self._number = document.number
                self._written, self._written_at = document, now
                store.put(live_key(self._sweep), document.to_json().encode() + b"\n")

        await self._asked(put)

    def _take_over(self, store: Store) -> None:
        """Looks whose document is there; what the driver before has counted goes on."""
        if self._is_first:
            before = read_live(store, self._sweep)
            if before is not None and before.generation < self._generation:
                spent = before.spending
                self._spending = LiveSpending(
                    calls=self._spending.calls + spent.calls,
                    input_tokens=self._spending.input_tokens + spent.input_tokens,
                    output_tokens=self._spending.output_tokens + spent.output_tokens,
                    cost_usd=self._spending.cost_usd + spent.cost_usd,
                    complete=spent.complete and before.has_ended,
                )
            self._is_first = False
        self._is_obsolete = generation_there(store, self._sweep) > self._generation

    def _tidy(self, store: Store) -> None:
        """No trial runs any more, whatever its node may have left."""
        for prefix in (live_trial_prefix(self._sweep), watched_prefix(self._sweep)):
            for key in list(islice(store.keys(prefix), TIDIED_AT_MOST)):
                store.delete(key)


def first_view(sweep: str, queue: WorkQueue) -> SweepView:
    """What is known of a sweep before there is a node."""
    now = time.monotonic()
    return sweep_view(sweep, queue.counts(), Pace(now), now, nodes=0, stopping=False)


def names_of(
    planned: Iterable[PlannedAttempt], cells: Mapping[str, CellSpec]
) -> Callable[[str], Named | None]:
    """What a sweep's attempts are called."""
    known = {each.attempt: each for each in planned}

    def name_of(attempt: str) -> Named | None:
        found = known.get(attempt)
        if found is None:
            return None
        cell = cells[found.cell]
        return Named(cell.task.name, cell.condition.condition, found.index)

    return name_of
