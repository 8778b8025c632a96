"""The gateway of a node: endpoints with their keys, and the trials that use them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from workers.contract.endpoint import DEFAULT_BASE_URL, Endpoint
from workers.gateway.errors import GatewayError
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import AgentAccess
from workers.gateway.secret import Secret, read_secret
from workers.gateway.trial import Account, GatewayTrial
from workers.gateway.upstream import Upstream


class Gateway:
    """One per node, in the node's event loop; an async context manager.

    Provider keys are read once, by the names that the endpoints give, and never leave this
    process except in the header of a request to their provider.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        environment: Mapping[str, str],
        *,
        limits: GatewayLimits | None = None,
    ) -> None:
        """Reads the keys.

        Args:
            endpoints: by name; one without a base URL uses its provider's own.
            environment: where the keys are, as ``<name>`` or ``<name>_FILE``.
            limits: bounds of time and size.

        Raises:
            GatewayError: a key's file cannot be read.
        """
        self._endpoints = dict(endpoints)
        self._keys = {
            one.api_key_env: read_secret(one.api_key_env, environment)
            for one in endpoints.values()
            if one.api_key_env is not None
        }
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

    async def open_trial(
        self,
        agents: Sequence[AgentAccess],
        ledger: Path,
        *,
        trial_max_cost_usd: float | None = None,
    ) -> GatewayTrial:
        """Opens a trial with a fresh token for each agent; the caller closes it.

        Args:
            agents: who may use which endpoint.
            ledger: the file to write, which must not exist.
            trial_max_cost_usd: what all agents together may spend; None: no limit.

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
        )
        self._trials = [one for one in self._trials if not one.is_closed]
        self._trials.append(trial)
        return trial

    def _account(self, name: str) -> Account:
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise GatewayError(f"there is no endpoint {name!r}")
        if endpoint.base_url is None and endpoint.provider not in DEFAULT_BASE_URL:
            raise GatewayError(f"endpoint {name!r} has no base_url")
        return Account(endpoint, self._key(name, endpoint))

    def _key(self, name: str, endpoint: Endpoint) -> Secret | None:
        if endpoint.api_key_env is None:
            return None
        key = self._keys[endpoint.api_key_env]
        if key is None:
            raise GatewayError(
                f"endpoint {name!r} needs its key in the variable {endpoint.api_key_env}, "
                f"or in the file that {endpoint.api_key_env}_FILE names"
            )
        return key
