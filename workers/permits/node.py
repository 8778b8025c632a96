"""All waiting lines of a node, and the health of its endpoints."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from workers.contract.endpoint import Endpoint
from workers.contract.permits import AccountNews, EndpointNews, Loan
from workers.permits.health import Health
from workers.permits.hints import hints_of
from workers.permits.line import Pass, WaitingLine

TOO_MANY = 429


class NodePermits:
    """The permits of one node; endpoints that the node serves itself need none."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        """Knows no endpoint, and lets every request go until something is lent."""
        self.on_news: Callable[[], None] = lambda: None
        """Called when the driver should hear of something at once."""
        self._wall = wall
        self._lines: dict[str, WaitingLine] = {}
        self._accounts: dict[str, str | None] = {}
        self._health: dict[str, Health] = {}

    def know(self, endpoints: Mapping[str, Endpoint]) -> None:
        """The endpoints of the sweep, as the driver has them."""
        self._accounts = {name: endpoint.account for name, endpoint in endpoints.items()}

    # The driver's word

    def lend(self, loans: Mapping[str, Loan]) -> None:
        """What may be done from now on; accounts that are not named stay as they are."""
        for account, loan in loans.items():
            self._line(account).lend(loan)

    def accounts(self) -> dict[str, AccountNews]:
        """What the driver should know of the accounts that were lent."""
        return {name: line.news() for name, line in self._lines.items() if line.permits is not None}

    def endpoints(self) -> dict[str, EndpointNews]:
        """What the driver should know of the endpoints that were asked."""
        now = asyncio.get_running_loop().time()
        return {name: health.news(now) for name, health in self._health.items()}

    def limited(self) -> tuple[str, ...]:
        """Endpoints that are asked by permits: all that the node does not serve itself."""
        return tuple(name for name, account in self._accounts.items() if account is not None)

    def permits(self, endpoint: str) -> int:
        """Requests that the node may have under way at an endpoint; 0 before anything is lent."""
        line = self._lines.get(self._accounts.get(endpoint) or "")
        return 0 if line is None else line.permits or 0

    # A request's way

    @asynccontextmanager
    async def admit(
        self, endpoint: str, agent: str, input_tokens: int, most_output: int
    ) -> AsyncIterator[Admission]:
        """The permit of one request; entering waits for its agent's turn.

        Args:
            endpoint: by its name in the sweep.
            agent: whose request it is, by a name that is its own on this node.
            input_tokens: as estimated.
            most_output: tokens that the answer may have.
        """
        account = self._accounts.get(endpoint)
        if account is None:
            yield Admission()
            return
        line = self._line(account)
        passed = await line.enter(agent, input_tokens, most_output)
        health = self._health.setdefault(endpoint, Health())
        admission = Admission(line, passed, health, self._wall)
        try:
            yield admission
        finally:
            admission.end()

    def _line(self, account: str) -> WaitingLine:
        if account not in self._lines:
            self._lines[account] = WaitingLine(lambda: self.on_news())
        return self._lines[account]


class Admission:
    """A request that may be sent, and what becomes of it."""

    def __init__(
        self,
        line: WaitingLine | None = None,
        passed: Pass | None = None,
        health: Health | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is counted of one without a line."""
        self._line = line
        self._passed = passed
        self._health = health
        self._wall = wall
        self._tokens: int | None = None

    def answered(self, status: int | None, headers: Iterable[tuple[str, str]]) -> None:
        """The head of an answer has come; null: the provider failed to give one."""
        line, passed, health = self._line, self._passed, self._health
        if line is None or passed is None or health is None:
            return
        now = asyncio.get_running_loop().time()
        hints = hints_of(headers, self._wall())
        if hints.requests_per_s is not None:
            line.limit_requests_per_s = hints.requests_per_s
        if hints.tokens_per_s is not None:
            line.limit_tokens_per_s = hints.tokens_per_s
        if status == TOO_MANY:
            self._tokens = 0
            line.refused(passed, hints.retry_after_s)
        elif status is None or status >= 500:
            self._tokens = 0
            line.failed(passed)
            health.failed(passed.agent, passed.sent_at, now)
        else:
            ok = 200 <= status < 300
            line.answered(passed, ok=ok)
            if ok:
                health.succeeded(passed.sent_at, now)
            else:
                self._tokens = 0

    def used(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """The tokens as the provider reports them; null: it does not."""
        if input_tokens is not None and output_tokens is not None:
            self._tokens = input_tokens + output_tokens
            if self._line is not None and output_tokens:
                self._line.learn_output(output_tokens)

    def end(self) -> None:
        """The request is over; its permit goes to the next."""
        if self._line is not None and self._passed is not None:
            self._line.end(self._passed, self._tokens)
            self._line = None
