"""The waiting line of a node for one provider's account.

Agents take turns; the requests of one agent keep their order. A place is given up by cancelling
the wait, and nobody waits longer than its own agent does: the line has no deadline of its own.

Three things let a request go: a permit is free, the account's pace allows it, and no refusal
holds the account back. A refusal acts here at once, whatever the driver will say: nothing more
is sent for as long as the provider asks, or where it does not say, for twice as long as after
the refusal before (RFC 6298 §5.5), since what was asked at once would be refused too.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from workers.contract.permits import AccountNews, Loan
from workers.permits.bucket import Bucket

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
LONGEST_HOLD_S = 600.0
"""However long a provider asks for: a wrong date must not end a sweep."""
FIRST_OUTPUT_TOKENS = 300.0
"""Of an answer, until answers have been seen."""
LEARNING = 0.1
"""Weight of the newest in a running average."""
TRY_S = 2.0
"""Between requests that try whether a refusal is over; it is known much sooner."""
SHORTEST_S = 0.001
"""Of a timer: shorter ones would only spin."""


@dataclass
class Pass:
    """A request that was let go; ``WaitingLine.end`` takes it back."""

    agent: str
    round: int
    sent_at: float
    tokens: float
    """Taken from the pace beforehand."""


@dataclass(eq=False)
class _Waiter:
    agent: str
    tokens: float
    turn: asyncio.Future[Pass]


class WaitingLine:
    """The requests of one node to one account."""

    def __init__(self, on_news: Callable[[], None] = lambda: None) -> None:
        """Lets everything go until something is lent.

        ``on_news`` is called when the driver should hear at once: of the first refusal of a
        round, and of a request that has to wait where none waited.
        """
        self.on_news = on_news
        self.limit_requests_per_s: float | None = None
        """By the provider's headers."""
        self.limit_tokens_per_s: float | None = None
        self._loan: Loan | None = None
        self._requests = Bucket()
        self._tokens = Bucket()
        self._refused_at = 0.0
        self._held_until = 0.0
        """By refusals here."""
        self._lent_until = 0.0
        """By refusals elsewhere; not told again, or two nodes would hold each other for ever."""
        self._backoff_s = FIRST_BACKOFF_S
        self._trying = False
        """Refused again after a wait of our own choice: one request at a time until one passes."""
        self._sent_at = 0.0
        """When the last was sent."""
        self._waiting: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self._in_use = 0
        self._started = self._ok = self._refused = self._failed = 0
        self._refused_in_round = self._in_use_when_refused = 0
        self._asked_to_wait = False
        self._latency_s = 0.0
        self._output_tokens = FIRST_OUTPUT_TOKENS

    # The driver's word

    def lend(self, loan: Loan) -> None:
        """What may be done from now on."""
        now = _now()
        if self._loan is None or loan.round != self._loan.round:
            self._refused_in_round = self._in_use_when_refused = 0
        self._loan = loan
        self._requests.set_rate(loan.requests_per_s, now)
        self._tokens.set_rate(loan.tokens_per_s, now)
        if loan.hold_s > 0:
            self._lent_until = now + loan.hold_s
        self._let_go()

    def news(self) -> AccountNews:
        """What the driver should know."""
        loan = self._loan
        return AccountNews(
            permits=self._in_use if loan is None else loan.permits,
            requests_per_s=self._requests.rate,
            tokens_per_s=self._tokens.rate,
            in_use=self._in_use,
            waiting=self.waiting,
            started=self._started,
            ok=self._ok,
            refused=self._refused,
            failed=self._failed,
            round=self._round,
            refused_in_round=self._refused_in_round,
            in_use_when_refused=self._in_use_when_refused,
            hold_s=max(0.0, self._held_until - _now()),
            asked_to_wait=self._asked_to_wait,
            limit_requests_per_s=self.limit_requests_per_s,
            limit_tokens_per_s=self.limit_tokens_per_s,
            latency_s=self._latency_s,
        )

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return sum(len(each) for each in self._waiting.values())

    @property
    def permits(self) -> int | None:
        """Requests that may be under way; None: any number."""
        return None if self._loan is None else self._loan.permits

    @property
    def in_use(self) -> int:
        """Requests under way."""
        return self._in_use

    # A request's way

    async def enter(self, agent: str, input_tokens: int, most_output: int) -> Pass:
        """Waits for the agent's turn; the pass must be given to ``end``.

        Args:
            agent: whose request it is.
            input_tokens: as estimated.
            most_output: tokens that the answer may have.
        """
        tokens = input_tokens + min(self._output_tokens, most_output)
        if not self._waiting and self._wait_s(_now()) <= 0:
            return self._go(agent, tokens)
        waiter = _Waiter(agent, tokens, asyncio.get_running_loop().create_future())
        if not self._waiting:
            self.on_news()
        self._waiting.setdefault(agent, deque()).append(waiter)
        self._let_go()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self.end(waiter.turn.result(), None)
            else:
                self._leave(waiter)
            raise

    def answered(self, passed: Pass, *, ok: bool) -> None:
        """The head of an answer has come, and it is no refusal and no fault of the provider's."""
        self._latency_s += LEARNING * (_now() - passed.sent_at - self._latency_s)
        if passed.sent_at > self._refused_at:
            # One that was under way at a refusal does not show that it is over.
            self._trying = False
            self._backoff_s = FIRST_BACKOFF_S
        if ok:
            self._ok += 1

    def refused(self, passed: Pass, retry_after_s: float | None) -> None:
        """The provider has answered with 429; null or 0: it does not say for how long."""
        now = _now()
        self._refused += 1
        self._asked_to_wait = bool(retry_after_s)
        # What only tries whether a refusal is over is refused by the same excess.
        in_round = passed.round == self._round and not self._trying
        first = in_round and not self._refused_in_round
        if in_round:
            self._refused_in_round += 1
        if first:
            self._in_use_when_refused = self._in_use
        if retry_after_s:
            self._hold(min(retry_after_s, LONGEST_HOLD_S), now)
        elif now >= self._held_until and passed.sent_at >= self._refused_at:
            # What was under way at the refusal before says nothing more.
            self._trying = self._backoff_s > FIRST_BACKOFF_S
            self._hold(self._backoff_s, now)
            self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)
        self._refused_at = now
        self._requests.empty(now)
        if first:
            self.on_news()

    def failed(self, passed: Pass) -> None:
        """The provider has failed, or was not reached."""
        self._failed += 1

    def end(self, passed: Pass, tokens: int | None) -> None:
        """The request is over.

        Args:
            passed: its pass.
            tokens: input and output as reported; null: not known, the estimate stays.
        """
        self._in_use -= 1
        if tokens is not None:
            self._tokens.take(tokens - passed.tokens, _now())
        self._let_go()

    def learn_output(self, tokens: int) -> None:
        """An answer had so many tokens."""
        self._output_tokens += LEARNING * (tokens - self._output_tokens)

    @property
    def _round(self) -> int:
        return 0 if self._loan is None else self._loan.round

    def _hold(self, seconds: float, now: float) -> None:
        self._held_until = max(self._held_until, now + seconds)

    def _wait_s(self, now: float) -> float:
        """How long until a request may go; endless where only an event can tell."""
        if self._loan is None:
            return max(0.0, self._held_until - now)
        if self._in_use >= self._loan.permits:
            return math.inf
        return max(
            self._held_until - now,
            self._lent_until - now,
            self._sent_at + TRY_S - now if self._trying else 0.0,
            self._requests.wait_s(now),
            self._tokens.wait_s(now),
            0.0,
        )

    def _go(self, agent: str, tokens: float) -> Pass:
        now = _now()
        self._in_use += 1
        self._started += 1
        self._sent_at = now
        self._requests.take(1.0, now)
        self._tokens.take(tokens, now)
        return Pass(agent, self._round, now, tokens)

    def _let_go(self) -> None:
        """Lets waiting requests go, an agent's after another's, as far as they may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            wait_s = self._wait_s(_now())
            if wait_s > 0:
                if wait_s < math.inf:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(max(wait_s, SHORTEST_S), self._let_go)
                return
            agent, own = self._waiting.popitem(last=False)
            waiter = own.popleft()
            if own:
                self._waiting[agent] = own
            if not waiter.turn.done():
                waiter.turn.set_result(self._go(agent, waiter.tokens))

    def _leave(self, waiter: _Waiter) -> None:
        own = self._waiting.get(waiter.agent)
        if own is not None and waiter in own:
            own.remove(waiter)
            if not own:
                del self._waiting[waiter.agent]


def _now() -> float:
    """The loop's clock: it is ``time.monotonic`` but in a simulation."""
    return asyncio.get_running_loop().time()
