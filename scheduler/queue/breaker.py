"""The circuit breaker of one node, and of one endpoint. Pure.

::

    closed ──failures──► open ──after a while──► probing ──a verdict──► closed
                          ▲                        │
                          └──────any other end─────┘

Only what was leased after a breaker opened can close it: the verdicts of tries that were under
way already say nothing of whether new ones would work.

*A node's* breaker counts invalid tries of harness blame that the node itself reported, within
a window. Of one cell at most two count, so that a task which fails wherever it is tried cannot
open any node's breaker, nor can two such tasks at the default limit. For the same reason it takes
failures of two conditions while more than one has attempts left: an agent that cannot start is
no node's fault, and leases go round over the conditions, so a bad node soon fails all of them.
Tries that were lost do not count: a node that is gone gets no leases anyway, and one that only
fell silent lost its leases for another reason than its work.

*An endpoint's* breaker counts consecutive tries that its provider is to blame for; a verdict of
any attempt that uses the endpoint starts the count anew. While it is open, the lines of the
cells that use it are parked. It also opens and closes on the word of whoever sees the requests
themselves (``WorkQueue.endpoint_down`` and ``endpoint_up``); probes go on meanwhile, since no
request can show that an endpoint is back while all its cells are parked.
"""

from __future__ import annotations

from collections import Counter, deque

from scheduler.queue.attempts import Attempt, Line

OF_ONE_CELL = 2
"""Failures of one cell that count towards a node's limit."""


class Breaker:
    """What breakers of both kinds have in common: open or closed, and one probe at a time."""

    def __init__(self, name: str, probe_s: float) -> None:
        """Closed; ``probe_s`` lie between its opening or a probe's end and the next probe."""
        self.name = name
        self.opened_at: float | None = None
        """On the queue's clock; null while it is closed."""
        self.probe: Attempt | None = None
        """Whose lease is to show whether it may close."""
        self._probe_s = probe_s
        self._probe_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether only probes are let through."""
        return self.opened_at is not None

    def open(self, now: float) -> None:
        """It was closed until now."""
        self.opened_at = now
        self._probe_at = now + self._probe_s

    def close(self) -> None:
        """Everything is let through; a probe that is still out says nothing any more."""
        self.opened_at = None
        self.probe = None

    def is_due(self, now: float) -> bool:
        """Whether a probe may be leased."""
        return self.is_open and self.probe is None and now >= self._probe_at

    def missed(self, now: float) -> None:
        """The probe ended without a verdict."""
        self.probe = None
        self._probe_at = now + self._probe_s


class NodeBreaker(Breaker):
    """A node's, with its failures within the window."""

    def __init__(self, name: str, probe_s: float, limit: int, window_s: float) -> None:
        """See ``Limits.node_breaker`` and ``node_breaker_s``."""
        super().__init__(name, probe_s)
        self._limit = limit
        self._window_s = window_s
        self._failures: deque[tuple[float, str, str]] = deque()
        self._of_cell: Counter[str] = Counter()
        self._of_condition: Counter[str] = Counter()
        self._counting = 0

    def failed(self, cell: str, condition: str, now: float) -> bool:
        """A try failed through the harness; whether the limit of cells' failures is reached."""
        while self._failures and now - self._failures[0][0] > self._window_s:
            _, old, of = self._failures.popleft()
            self._of_cell[old] -= 1
            self._counting -= self._of_cell[old] < OF_ONE_CELL
            self._of_condition[of] -= 1
        self._failures.append((now, cell, condition))
        self._counting += self._of_cell[cell] < OF_ONE_CELL
        self._of_cell[cell] += 1
        self._of_condition[condition] += 1
        return self._counting >= self._limit

    @property
    def conditions(self) -> int:
        """How many conditions' tries have failed within the window."""
        return sum(count > 0 for count in self._of_condition.values())

    def close(self) -> None:
        """Starts anew."""
        super().close()
        self._failures.clear()
        self._of_cell.clear()
        self._of_condition.clear()
        self._counting = 0


class EndpointBreaker(Breaker):
    """An endpoint's, with the lines of the cells that use it."""

    def __init__(self, name: str, probe_s: float, limit: int) -> None:
        """See ``Limits.endpoint_breaker``."""
        super().__init__(name, probe_s)
        self.lines: deque[Line] = deque()
        self._limit = limit
        self._in_a_row = 0

    def failed(self, now: float) -> bool:
        """A try failed through the provider; whether that opens the breaker."""
        self._in_a_row += 1
        if self.is_open or self._in_a_row < self._limit:
            return False
        self.open(now)
        return True

    def answered(self) -> None:
        """A verdict was reached with it."""
        self._in_a_row = 0

    def open(self, now: float) -> None:
        """Parks the lines."""
        super().open(now)
        for line in self.lines:
            line.parked_by += 1

    def close(self) -> None:
        """Frees the lines from this endpoint; they are put in turn by the caller."""
        if self.is_open:
            for line in self.lines:
                line.parked_by -= 1
        super().close()
        self._in_a_row = 0
