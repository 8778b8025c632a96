"""The gateway of one trial: its tokens, its sockets, its ledger."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from aiohttp import web

from workers.allowance import Purse
from workers.contract.condition import Budget
from workers.contract.result import Usage
from workers.gateway.account import Account
from workers.gateway.call import Call
from workers.gateway.desk import Desk, Permit, Permits, Seat
from workers.gateway.headers import Headers
from workers.gateway.ledger import Ledger, LedgerLine, usage_of
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import AgentAccess, Charge, Meter
from workers.gateway.upstream import Upstream

_LOG = logging.getLogger(__name__)
_SILENT = logging.getLogger("workers.gateway.protocol")
_SILENT.disabled = True
"""aiohttp quotes a malformed request in its log, and with it the token it may hold."""


class TokenMap(Mapping[str, str]):
    """Agent id to token; shows no token."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = dict(tokens)

    def __getitem__(self, agent: str) -> str:
        return self._tokens[agent]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"TokenMap({', '.join(self._tokens)})"


class GatewayTrial:
    """One trial's side of the gateway, made by ``Gateway.open_trial``; ``close`` ends it."""

    tokens: Mapping[str, str]
    """Agent id to token."""

    def __init__(
        self,
        agents: Sequence[AgentAccess],
        accounts: Mapping[str, Account],
        ledger: Path,
        *,
        trial_max_cost_usd: float | None,
        upstream: Upstream,
        limits: GatewayLimits,
        purse: Purse,
        permits: Permits,
        try_: str,
        heard: Callable[[LedgerLine], None] = lambda line: None,
    ) -> None:
        self.tokens = TokenMap({one.agent: secrets.token_urlsafe(32) for one in agents})
        whole = Meter(Budget(max_cost_usd=trial_max_cost_usd))
        seats = {
            self.tokens[one.agent]: Seat(
                access=one,
                account=accounts[one.endpoint],
                meters=((one.agent, Meter(one.budget)), ("the trial", whole)),
            )
            for one in agents
        }
        self._ledger = Ledger(ledger, heard)
        self._desk = Desk(
            seats, self._ledger, upstream, limits, purse=purse, permits=permits, try_=try_
        )
        self._limits = limits
        self._http = web.Server(
            self._handle,
            handler_cancellation=True,  # An agent that goes away ends its upstream request.
            access_log=None,
            logger=_SILENT,
            auto_decompress=False,
        )
        self._servers: list[asyncio.Server] = []
        self._running: dict[asyncio.Task[object], Call] = {}
        self._closed = False

    async def serve(self, sock: socket.socket) -> None:
        """Serves this trial on a socket, which is the trial's from now on."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(self._protocol, sock=sock))

    def _protocol(self) -> asyncio.Protocol:
        """The protocol of one more connection."""
        if len(self._http.connections) >= self._limits.connections:
            return _Refusal()
        return self._http()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def last_activity(self) -> float:
        """When a byte last passed, in ``time.monotonic``."""
        return self._desk.last_activity

    def lines(self) -> tuple[LedgerLine, ...]:
        """The ledger: the requests that have ended, by arrival."""
        return self._ledger.lines()

    def usage(self) -> Usage:
        """The sums over the ledger."""
        return usage_of(self.lines())

    async def close(self) -> None:
        """Ends sockets and requests within bounds and closes the ledger.

        Requests in the middle are in the ledger as ``cut``. A second call does nothing.

        Raises:
            GatewayError: a line is missing from the ledger's file.
        """
        if self._closed:
            return
        self._closed = True
        for server in self._servers:
            server.close()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=self._limits.close_s)
        for call in self._running.values():
            # One that does not end is in the ledger all the same.
            call.note()
        self._http.pre_shutdown()
        await self._http.shutdown(self._limits.close_s)
        self._ledger.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        call = self._running[task] = Call(self._desk, request, time.monotonic())
        try:
            return await call.answer()
        except Exception:  # noqa: BLE001 - a connection's last frame: a bug is logged, not lost.
            _LOG.exception("a request to the gateway failed by a fault of its own")
            return web.Response(status=500, text="the gateway failed")
        finally:
            self._running.pop(task, None)


class FreePermits:
    """Admits every request at once."""

    def permit(
        self, account: Account, assumed: Charge, who: str
    ) -> AbstractAsyncContextManager[Permit]:
        """See ``Permits``."""
        return self._free()

    @asynccontextmanager
    async def _free(self) -> AsyncIterator[Permit]:
        yield _FREE


class _FreePermit:
    def answered(self, status: int | None, headers: Headers) -> None:
        """Nothing follows from it."""

    def used(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """Nothing follows from it."""


_FREE = _FreePermit()


class _Refusal(asyncio.Protocol):
    """Ends a connection that is one too many, unread."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Drops it at once."""
        if isinstance(transport, asyncio.Transport):
            transport.abort()
