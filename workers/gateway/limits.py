"""The bounds of the gateway."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class GatewayLimits:
    """How long and how large; seconds and bytes."""

    connect_s: float = 10.0
    read_s: float = 600.0
    """Without a byte from the provider; a thinking model may be silent for minutes."""
    total_s: float = 1200.0
    """Of one request: the longest that Buzz's agent waits (spec: buzz-wire 5.5)."""
    body_s: float = 60.0
    """Until an agent has sent its request."""
    close_s: float = 2.0
    """For the requests of a trial to end once they are cancelled."""
    request_bytes: int = 64 * MIB
    response_bytes: int = 64 * MIB
    connections: int = 128
    """Open connections of one trial; an agent needs a handful, and descriptors are the node's."""
    refusals: int = 1000
    """Refused requests of a trial that get a ledger line; the rest leave none."""
