"""The gateway's requests in the waiting lines of their accounts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from workers.gateway.account import Account
from workers.gateway.desk import Permit
from workers.gateway.meter import Charge
from workers.permits.node import NodePermits


class LinedPermits:
    """Admits requests as a node's permits let them (``Permits``)."""

    def __init__(self, node: NodePermits) -> None:
        """Of the node that the gateway belongs to."""
        self._node = node

    def permit(
        self, account: Account, assumed: Charge, who: str
    ) -> AbstractAsyncContextManager[Permit]:
        """See ``Permits``."""
        return self._permit(account, assumed, who)

    @asynccontextmanager
    async def _permit(self, account: Account, assumed: Charge, who: str) -> AsyncIterator[Permit]:
        given, made = assumed.input_tokens, assumed.output_tokens
        async with self._node.admit(account.name, who, given, made) as admission:
            yield admission
