"""The gateway of a node: endpoints with their keys, and the trials that use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from workers.allowance import Purse
from workers.contract.endpoint import Endpoint
from workers.gateway.account import Account
from workers.gateway.desk import Permits
from workers.gateway.errors import GatewayError
from workers.gateway.ledger import LedgerLine
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import AgentAccess
from workers.gateway.trial import FreePermits, GatewayTrial
from workers.gateway.upstream import Upstream


class Gateway:
    """One per node, in the node's event loop; an async context manager.

    Provider keys are read by the names that the endpoints give, a file again when it changes, and
    never leave this process except in the header of a request to their provider.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        environment: Mapping[str, str],
        *,
        limits: GatewayLimits | None = None,
        purse: Purse | None = None,
        permits: Permits | None = None,
        heard: Callable[[LedgerLine], None] = lambda line: None,
    ) -> None:
        """Reads keys and certificates.

        Args:
            endpoints: by name; one without a base URL uses its provider's own.
            environment: where the keys are, as ``<name>`` or ``<name>_FILE``.
            limits: bounds of time and size.
            purse: what the node may spend of the sweep's budget; None: no limit.
            permits: who admits requests to an account; None: all go at once.
            heard: hears of every line of every trial's ledger.

        Raises:
            GatewayError: a file of a key or of certificates cannot be read.
        """
        self._accounts = {name: Account(name, one, environment) for name, one in endpoints.items()}
        self._purse = purse or Purse()
        self._permits = permits or FreePermits()
        self._heard = heard
        self._limits = limits or GatewayLimits()
        self._upstream: Upstream | None = None
        self._trials: list[GatewayTrial] = []

    async def __aenter__(self) -> Self:
        self._upstream = Upstream(self._limits)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        closings = (trial.close() for trial in self._trials)
        faults = await asyncio.gather(*closings, return_exceptions=True)
        if self._upstream is not None:
            await self._upstream.close()
            self._upstream = None
        for fault in faults:
            if fault is not None:
                raise fault

    def lacking(self) -> tuple[str, ...]:
        """What keeps endpoints from being used, a sentence each: keys that this node lacks."""
        faults = (account.missing() for account in self._accounts.values())
        return tuple(fault for fault in faults if fault is not None)

    async def open_trial(
        self,
        agents: Sequence[AgentAccess],
        ledger: Path,
        *,
        trial_max_cost_usd: float | None = None,
        try_: str = "",
    ) -> GatewayTrial:
        """Opens a trial with a fresh token for each agent; the caller closes it.

        Args:
            agents: who may use which endpoint.
            ledger: the file to write, which must not exist.
            trial_max_cost_usd: what all agents together may spend; None: no limit.
            try_: the trial's name in the purse.

        Raises:
            GatewayError: an endpoint is unknown, has no URL or no key, or the ledger's file
                cannot be made.
        """
        if self._upstream is None:
            raise GatewayError("the gateway is not open")
        accounts = {one.endpoint: self._account(one.endpoint) for one in agents}
        trial = GatewayTrial(
            agents,
            accounts,
            ledger,
            trial_max_cost_usd=trial_max_cost_usd,
            upstream=self._upstream,
            limits=self._limits,
            purse=self._purse,
            permits=self._permits,
            try_=try_,
            heard=self._heard,
        )
        self._trials = [one for one in self._trials if not one.is_closed]
        self._trials.append(trial)
        return trial

    def _account(self, name: str) -> Account:
        account = self._accounts.get(name)
        if account is None:
            raise GatewayError(f"there is no endpoint {name!r}")
        if (fault := account.missing()) is not None:
            raise GatewayError(fault)
        return account
