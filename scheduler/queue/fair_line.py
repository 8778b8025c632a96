"""The order in which planned attempts are leased: round robin over conditions. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections import deque

from scheduler.queue.attempts import Attempt, Condition
from scheduler.queue.states import State


class FairLine:
    """One line of planned attempts for each condition, served in turn.

    An attempt that has left ``planned`` by another way than ``pop`` is skipped when its turn
    comes; since no attempt returns from where such ways lead, none ever stands here twice.
    """

    def __init__(self) -> None:
        self._lines: dict[Condition, deque[Attempt]] = {}
        self._turns: deque[Condition] = deque()
        """The conditions whose line is not empty, each once, the next to be served first."""
        self._delayed: list[tuple[float, int, Attempt]] = []
        self._order = itertools.count()

    def push(self, attempt: Attempt, *, first: bool = False) -> None:
        """Puts an attempt at the end of its condition's line, or at its beginning."""
        condition = attempt.cell.condition
        line = self._lines.setdefault(condition, deque())
        if not line:
            self._turns.append(condition)
        if first:
            line.appendleft(attempt)
        else:
            line.append(attempt)

    def delay(self, attempt: Attempt, until: float) -> None:
        """Puts an attempt into its line once the queue's clock has reached ``until``."""
        heapq.heappush(self._delayed, (until, next(self._order), attempt))

    def pop(self, now: float) -> Attempt | None:
        """The next planned attempt, taken out of its line; None if there is none at ``now``."""
        self._admit(now)
        while self._turns:
            condition = self._turns.popleft()
            line = self._lines[condition]
            attempt = line.popleft()
            while attempt.state is not State.PLANNED and line:
                attempt = line.popleft()
            if line:
                self._turns.append(condition)
            if attempt.state is State.PLANNED:
                return attempt
        return None

    def next_due(self) -> float | None:
        """When the first delayed attempt may be leased; None if none is delayed."""
        return self._delayed[0][0] if self._delayed else None

    def _admit(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            _, _, attempt = heapq.heappop(self._delayed)
            if attempt.state is State.PLANNED:
                self.push(attempt)
