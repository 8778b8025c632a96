"""How much may be asked of one provider's account at once, and how fast. Pure.

*Window.* Requests under way over the whole cluster. It starts at ten (RFC 6928) and doubles each
round trip, one more for every success (slow start, RFC 5681 §3.1), but only while all of it is
used (RFC 7661). A refusal takes it to 0.8 of what was under way, once for a round trip: refusals
of requests that were sent before are the consequence of the same excess (RFC 6582's recovery
point; here it is the loan's ``round``). After that it follows ``Curve``.

*Pace.* Requests a second. Most providers limit requests and tokens by the minute, which a window
meets badly: how many requests a window lets pass depends on how long they take. So a refusal
that is not the window's doing also sets a pace, by what the provider has let pass between this
refusal and an earlier one: both times its allowance was used up, so that is the allowance,
whether it is a token bucket's or a fixed minute's. The pace follows a ``Curve`` as well.

*Whose doing a refusal is.* If in the last minute more requests were under way without a refusal,
it is not their number, and the pace shrinks with the window; otherwise the window alone. Three
refusals in a row at nearly the same number are the number's doing, and the pace is let go.

*Given limits* (endpoint file), and an allowance in the provider's headers, bound both from the
start. 2 % less is used: several nodes may each let a burst pass.

A failure (5xx, no answer) is no refusal: nothing shrinks, but nothing grows for five seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from scheduler.permits.curve import Curve
from workers.contract.permits import AccountNews

FIRST_WINDOW = 10
GIVEN_SHARE = 0.98
"""Of a limit that is given: that much is asked for."""
LOOK_BACK_S = 60.0
"""How long what was under way without a refusal speaks for the window."""
SAME = 0.9
"""Fewer under way than this share of what went well lately: their number was not the reason."""
LEVELS = 3
ALIKE = 1.12
"""So many refusals in a row at nearly the same number under way: the number is the reason."""
LEAST_BETWEEN_S = 15.0
"""Refusals closer than this say nothing of an allowance."""
MINUTE_S = 60.0
"""That by which providers count."""
REQUESTS_PER_REFUSAL = 250.0
"""The next refusal should come after so many requests for each that the last ones cost."""
SHORTEST_SPAN_S = 20.0
LONGEST_SPAN_S = 480.0
ROUND_S = 3.0
"""The longest round trip that is waited out: a refusal comes at once, however slow answers are."""
PAUSE_S = 5.0
"""After a failure, without growth."""


@dataclass(frozen=True)
class Given:
    """What the operator allows; null: as the provider lets."""

    concurrency: int | None = None
    requests_per_s: float | None = None
    tokens_per_s: float | None = None


class AccountControl:
    """The window and the pace of one account."""

    def __init__(self, given: Given, now: float) -> None:
        """Nothing was asked yet."""
        self.round = 0
        self.refused_at: float | None = None
        """The last time that it shrank."""
        self._given = given
        self._slow_start = float(FIRST_WINDOW)
        self._window: Curve | None = None
        self._pace: Curve | None = None
        self._headers: tuple[float | None, float | None] = (None, None)
        self._admitted = 0
        self._first_at: float | None = None
        self._marks: deque[tuple[float, int]] = deque()
        """Refusals: when, and how many requests had passed until then."""
        self._levels: deque[int] = deque(maxlen=LEVELS)
        """How many were under way at the last refusals."""
        self._history: deque[tuple[float, int]] = deque()
        """The same over the last minute, with every node's word."""
        self._busy: deque[tuple[float, int]] = deque()
        """How many were under way lately, without a refusal."""
        self._cost = 0
        """Refusals since the last time that it shrank."""
        self._rate = 0.0
        self._grown_at = now
        self._paused_until = now

    # The limits

    @property
    def window(self) -> int:
        """Requests under way at most, at least one."""
        found = self._slow_start if self._window is None else self._window.value
        bound = self._given.concurrency
        return max(1, int(found) if bound is None else min(int(found), bound))

    @property
    def requests_per_s(self) -> float | None:
        """Null: not limited."""
        found = None if self._pace is None else self._pace.value
        return _least(found, _most_of(self._given.requests_per_s), _most_of(self._headers[0]))

    @property
    def tokens_per_s(self) -> float | None:
        """Null: not limited."""
        return _least(_most_of(self._given.tokens_per_s), _most_of(self._headers[1]))

    # What is heard

    def joined(self, nodes: int) -> None:
        """So many nodes share it now: the first request of none should have to wait."""
        self._slow_start = max(self._slow_start, 2.0 * nodes)

    def heard(
        self,
        before: AccountNews,
        news: AccountNews,
        in_use: int,
        wanted: bool,
        now: float,
    ) -> None:
        """A node has spoken.

        Args:
            before: what it said before.
            news: what it says now.
            in_use: requests under way on all nodes.
            wanted: whether more could be sent than may be.
            now: on the driver's clock.
        """
        told = (news.limit_requests_per_s, news.limit_tokens_per_s)
        if any(told):
            self._headers = (told[0] or self._headers[0], told[1] or self._headers[1])
        started = news.started - before.started
        refused = news.refused - before.refused
        failed = news.failed - before.failed
        self._admitted += max(0, started - refused - failed)
        if started > 0 and self._first_at is None:
            self._first_at = now
        if failed > 0:
            self._paused_until = now + PAUSE_S
        self._cost += refused
        self._history.append((now, self._admitted))
        while now - self._history[0][0] > MINUTE_S:
            self._history.popleft()
        if news.round == self.round and news.refused_in_round > 0:
            self.round += 1
            if self.refused_at is None or now - self.refused_at > min(news.latency_s, ROUND_S):
                self._shrink(max(in_use, news.in_use_when_refused, 1), now)
            return
        while self._busy and now - self._busy[0][0] > LOOK_BACK_S:
            self._busy.popleft()
        self._busy.append((now, in_use))
        self._grow(news.ok - before.ok, wanted, now, held=news.hold_s > 0)

    # Up and down

    def _shrink(self, under_way: int, now: float) -> None:
        self.refused_at = now
        most = max((count for _, count in self._busy), default=0)
        self._levels.append(under_way)
        allowance = self._allowance(now)
        if under_way < SAME * most:
            if allowance is not None:
                current = self.requests_per_s
                self._pace = Curve(allowance if current is None else min(current, allowance))
        elif len(self._levels) == LEVELS and max(self._levels) <= ALIKE * min(self._levels):
            self._pace = None
        self._window = Curve(float(max(1, under_way - 1, most)))
        self._marks.append((now, self._admitted))
        self._cost = 1
        self._grown_at = now

    def _allowance(self, now: float) -> float | None:
        """Requests a second that passed between this refusal and an earlier one, or lately."""
        start: tuple[float, int] | None = None
        while self._marks and now - self._marks[0][0] >= LEAST_BETWEEN_S:
            start = self._marks.popleft()
        if start is not None:
            self._marks.appendleft(start)
        elif self._first_at is not None:
            start = (self._first_at, 0)
        if start is None:
            return None
        passed = self._admitted - start[1]
        between = passed / max(1.0, now - start[0])
        self._rate = max(between, self._passed_in(MINUTE_S, now))
        return self._rate if self._rate > 0 else None

    def _passed_in(self, seconds: float, now: float) -> float:
        """Requests a second that passed in the last seconds."""
        before = next((each for each in self._history if now - each[0] <= seconds), None)
        return 0.0 if before is None else (self._admitted - before[1]) / seconds

    def _grow(self, successes: int, wanted: bool, now: float, *, held: bool) -> None:
        seconds, self._grown_at = now - self._grown_at, now
        if not wanted or held or now < self._paused_until:
            return
        if self._window is None:
            self._slow_start += successes
            return
        span = self._span_s()
        self._window.grow(seconds, span)
        if self._pace is not None:
            self._pace.grow(seconds, span)

    def _span_s(self) -> float:
        span = REQUESTS_PER_REFUSAL * max(1, self._cost) / max(self._rate, 1e-3)
        return min(max(span, SHORTEST_SPAN_S), LONGEST_SPAN_S)


def _most_of(limit: float | None) -> float | None:
    return None if limit is None else GIVEN_SHARE * limit


def _least(*limits: float | None) -> float | None:
    return min((each for each in limits if each is not None), default=None)
