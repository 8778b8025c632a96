"""The order in which planned attempts are leased: round robin over conditions. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Set

from scheduler.queue.attempts import Attempt, Condition, Line
from scheduler.queue.states import State


class FairLine:
    """The lines of planned attempts, the conditions served in turn.

    An attempt that has left ``planned`` by another way than ``pop`` is skipped when its turn
    comes; since no attempt returns from where such ways lead, none ever stands here twice.
    A line that is parked loses its turn when it comes, and gets it back by ``resume``.
    Canaries have no turn but their share: in turns they would all be served at the start.
    """

    def __init__(self) -> None:
        self._ready: dict[Condition, deque[Line]] = {}
        """The lines in turn by condition, each once, the next to be served first."""
        self._turns: deque[Condition] = deque()
        """The conditions that have lines in turn, each once, the next to be served first."""
        self._canaries: deque[Condition] = deque()
        """Those conditions that have lines in turn and are served once in ``every`` attempts."""
        self._served = 0
        """Attempts given of the conditions that take turns."""
        self._delayed: list[tuple[float, int, Attempt]] = []
        self._order = itertools.count()

    def push(self, attempt: Attempt, *, first: bool = False) -> None:
        """Puts an attempt at the end of its line, or at its beginning."""
        line = attempt.cell.line
        if first:
            line.waiting.appendleft(attempt)
        else:
            line.waiting.append(attempt)
        self.resume(line)

    def delay(self, attempt: Attempt, until: float) -> None:
        """Puts an attempt into its line once the queue's clock has reached ``until``."""
        heapq.heappush(self._delayed, (until, next(self._order), attempt))

    def admit(self, now: float) -> None:
        """Puts the delayed attempts that are due into their lines."""
        while self._delayed and self._delayed[0][0] <= now:
            _, _, attempt = heapq.heappop(self._delayed)
            if attempt.state is State.PLANNED:
                self.push(attempt)

    def resume(self, line: Line) -> None:
        """Gives a line its turn, if attempts stand in it and nothing parks it."""
        if line.in_turn or line.parked_by or not line.waiting:
            return
        ready = self._ready.setdefault(line.condition, deque())
        if not ready:
            (self._canaries if line.condition.every else self._turns).append(line.condition)
        ready.append(line)
        line.in_turn = True

    def pop(self, now: float) -> Attempt | None:
        """The next planned attempt, taken out of its line; None if there is none at ``now``."""
        self.admit(now)
        due = [each for each in self._canaries if each.due <= self._served]
        for canary in due:
            self._canaries.remove(canary)
            if (attempt := self._pop_of(canary, self._canaries)) is not None:
                canary.due = self._served + canary.every
                return attempt
        while self._turns:
            if (attempt := self._pop_of(self._turns.popleft(), self._turns)) is not None:
                self._served += 1
                return attempt
        while self._canaries:
            attempt = self._pop_of(self._canaries.popleft(), self._canaries)
            if attempt is not None:
                return attempt
        return None

    def _pop_of(self, condition: Condition, turns: deque[Condition]) -> Attempt | None:
        """The next attempt of a condition, which goes to the end of the turns if it has more."""
        ready = self._ready[condition]
        attempt = _next_of(ready)
        if ready:
            turns.append(condition)
        return attempt

    def remove(self, attempts: Set[Attempt]) -> None:
        """Takes attempts out of wherever they wait; visits all that wait in their lines."""
        for line in {attempt.cell.line for attempt in attempts}:
            line.waiting = deque(each for each in line.waiting if each not in attempts)
        self._delayed = [each for each in self._delayed if each[2] not in attempts]
        heapq.heapify(self._delayed)

    def next_due(self) -> float | None:
        """When the first delayed attempt may be leased; None if none is delayed."""
        return self._delayed[0][0] if self._delayed else None


def take(line: Line) -> Attempt | None:
    """The next planned attempt of a line, parked or not, taken out of it."""
    while line.waiting:
        attempt = line.waiting.popleft()
        if attempt.state is State.PLANNED:
            return attempt
    return None


def _next_of(ready: deque[Line]) -> Attempt | None:
    """The next attempt of a condition's lines; what is parked or empty is put out of turn."""
    while ready:
        line = ready.popleft()
        attempt = None if line.parked_by else take(line)
        if line.waiting and not line.parked_by:
            ready.append(line)
        else:
            line.in_turn = False
        if attempt is not None:
            return attempt
    return None
