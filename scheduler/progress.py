"""What a running sweep shows of itself, from the queue's counts and the time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from scheduler.queue import Counts, WorkQueue
from scheduler.view import ConditionView, Standing, SweepView
from workers.contract.outcome import BLAME_OF, RULES, Cause
from workers.contract.spec import CellSpec

WINDOW_S = 60.0
MAKING_SHARE = 50.0
"""The standings are made anew after so many times what making them took."""

Counted = Callable[[], Iterable[tuple[str, str, str, int]]]
"""Every attempt by cell, state and cause (``WorkQueue.standings``)."""


class Pace:
    """How fast attempts are settled, over the last minute or since the start."""

    def __init__(self, started: float) -> None:
        """Starts at a time of the driver's monotonic clock."""
        self._started = started
        self._settled: deque[tuple[float, int]] = deque()

    def note(self, now: float, count: int = 1) -> None:
        """Attempts were settled at ``now``."""
        self._settled.append((now, count))
        self._forget(now)

    def per_minute(self, now: float) -> float:
        """Attempts settled per minute; 0 before the first."""
        self._forget(now)
        span = min(WINDOW_S, now - self._started)
        return 60.0 * sum(count for _, count in self._settled) / span if span > 0 else 0.0

    def elapsed_s(self, now: float) -> float:
        """Seconds since the start."""
        return now - self._started

    def _forget(self, now: float) -> None:
        while self._settled and self._settled[0][0] < now - WINDOW_S:
            self._settled.popleft()


def sweep_view(
    sweep: str,
    counts: Mapping[str, Counts],
    pace: Pace,
    now: float,
    *,
    nodes: int,
    stopping: bool,
) -> SweepView:
    """One moment of the sweep, as far as counts and time tell it."""
    rate = pace.per_minute(now)
    left = sum(each.planned + each.held for each in counts.values())
    return SweepView(
        sweep=sweep,
        conditions=tuple(_condition_view(name, each) for name, each in counts.items()),
        elapsed_s=pace.elapsed_s(now),
        attempts_per_minute=rate,
        eta_s=60.0 * left / rate if rate > 0 else None,
        nodes=nodes,
        stopping=stopping,
    )


def settled_of(counts: Mapping[str, Counts]) -> int:
    """How many attempts are settled."""
    return sum(each.passed + each.failed + each.dead for each in counts.values())


class Standings:
    """How the attempts of a sweep stand, made of the queue's count of them."""

    def __init__(
        self, cells: Mapping[str, CellSpec], timer: Callable[[], float] = time.perf_counter
    ) -> None:
        """Knows the cells; ``timer`` measures what the making costs, in seconds."""
        self._places = {
            name: (spec.condition.condition, spec.task.name, spec.task.layer)
            for name, spec in cells.items()
        }
        self._timer = timer
        self._made: Mapping[Standing, int] = {}
        self._due = timer()

    def of(self, counted: Counted, *, anew: bool = False) -> Mapping[Standing, int]:
        """Every attempt by how it stands; what was made last, where making takes long.

        Verdict and blame follow from the cause; an attempt of which none is known has neither.

        Args:
            counted: asks the queue.
            anew: it is the last time.
        """
        started = self._timer()
        if anew or started >= self._due:
            self._made = self._make(counted())
            ended = self._timer()
            # A sweep of many thousand cells may not spend its driver's time on being looked at.
            self._due = ended + MAKING_SHARE * (ended - started)
        return self._made

    def _make(self, counted: Iterable[tuple[str, str, str, int]]) -> Mapping[Standing, int]:
        found: dict[Standing, int] = {}
        told: dict[str, tuple[str, str, str]] = {"": ("", "", "")}
        for cell, state, cause, count in counted:
            why = told.get(cause)
            if why is None:
                blame = BLAME_OF[Cause(cause)]
                why = told[cause] = (RULES[blame].verdict.value, blame.value, cause)
            standing = Standing._make((*self._places[cell], state, *why))
            found[standing] = found.get(standing, 0) + count
        return found


class Views:
    """What a running sweep shows of itself, moment by moment."""

    def __init__(
        self, sweep: str, cells: Mapping[str, CellSpec], queue: WorkQueue, started: float
    ) -> None:
        """Begins at a time of the driver's monotonic clock."""
        self._sweep = sweep
        self._queue = queue
        self._pace = Pace(started)
        self._standings = Standings(cells)
        self._settled = settled_of(queue.counts())

    def at(self, now: float, *, nodes: int, stopping: bool, last: bool = False) -> SweepView:
        """The view at a time, without what only the nodes' driver knows; ``last``: the sweep's."""
        counts = self._queue.counts()
        settled = settled_of(counts)
        self._pace.note(now, settled - self._settled)
        self._settled = settled
        view = sweep_view(self._sweep, counts, self._pace, now, nodes=nodes, stopping=stopping)
        return replace(
            view,
            standings=self._standings.of(self._queue.standings, anew=last),
            parked_endpoints=self._queue.parked_endpoints,
        )


def _condition_view(name: str, counts: Counts) -> ConditionView:
    return ConditionView(
        condition=name,
        waiting=counts.planned + counts.parked,
        running=counts.held,
        passed=counts.passed,
        failed=counts.failed,
        invalid=counts.dead,
        invalid_tries=counts.invalid_tries,
    )
