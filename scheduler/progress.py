"""What a running sweep shows of itself, from the queue's counts and the time. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from scheduler.queue import Counts
from scheduler.view import ConditionView, SweepView

WINDOW_S = 60.0


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
    """One moment of the sweep, as observers see it."""
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
