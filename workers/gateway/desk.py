"""What the requests of a trial share: seats and budgets, the ledger, the way out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from workers.allowance import Purse
from workers.gateway.account import Account
from workers.gateway.headers import Headers
from workers.gateway.ledger import Ledger
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import AgentAccess, Charge, Meter
from workers.gateway.route import model_of
from workers.gateway.upstream import Upstream


@dataclass(frozen=True)
class Seat:
    """An agent's place at the gateway."""

    access: AgentAccess
    account: Account
    meters: tuple[tuple[str, Meter], ...]
    """The budgets that bind it, each with its owner's name."""

    @property
    def model(self) -> str:
        """The model name that its requests must carry."""
        return model_of(self.access.endpoint, self.account.endpoint)


class Permit(Protocol):
    """The right of one request to be forwarded; it ends with its context."""

    def answered(self, status: int | None, headers: Headers) -> None:
        """The provider's status and headers have come; None: it failed to answer.

        Not called where the agent went away before.
        """
        ...

    def used(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """The tokens that it has come to, before it ends; None: not known."""
        ...


class Permits(Protocol):
    """Admits requests to a provider's account; entering waits for as long as that takes."""

    def permit(
        self, account: Account, assumed: Charge, who: str
    ) -> AbstractAsyncContextManager[Permit]:
        """The permit of one request of the agent ``who``, which may cost ``assumed``."""
        ...


class Desk:
    """What the requests of a trial share."""

    def __init__(
        self,
        seats: Mapping[str, Seat],
        ledger: Ledger,
        upstream: Upstream,
        limits: GatewayLimits,
        *,
        purse: Purse,
        permits: Permits,
        try_: str,
    ) -> None:
        self.seats = seats
        """By token."""
        self.ledger = ledger
        self.upstream = upstream
        self.limits = limits
        self.purse = purse
        self.permits = permits
        self.try_ = try_
        """The trial's name in the purse."""
        self.opened = self.last_activity = time.monotonic()
        self._settled = asyncio.Event()
        self.requests = 0
        self.refusals = 0

    async def next_settled(self) -> None:
        """Waits until a call in flight has come to what it comes to."""
        await self._settled.wait()

    def has_settled(self) -> None:
        """A call has: who waits for room in a budget looks again."""
        self._settled.set()
        self._settled = asyncio.Event()
