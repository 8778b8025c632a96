"""The gateway between agents and model providers: one per node, one token per agent."""

from __future__ import annotations

from workers.gateway.errors import GatewayError
from workers.gateway.ledger import PROVIDER_FAULTS, CallResult, LedgerLine, usage_of
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import AgentAccess
from workers.gateway.route import model_of
from workers.gateway.server import Gateway
from workers.gateway.trial import GatewayTrial

__all__ = [
    "PROVIDER_FAULTS",
    "AgentAccess",
    "CallResult",
    "Gateway",
    "GatewayError",
    "GatewayLimits",
    "GatewayTrial",
    "LedgerLine",
    "model_of",
    "usage_of",
]
