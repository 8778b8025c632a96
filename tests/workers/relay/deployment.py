"""Our relay as a deployment: another host name, closed membership, at a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from workers.nostr.attestation import Attestation, attest
from workers.nostr.keys import Keypair
from workers.relay import EmbeddedRelay, ExternalRelay
from workers.relay.limits import Limits
from workers.relay.rates import Rates

AUTHORITY = "relay.deployment.test:3600"


class Party(NamedTuple):
    """An attested identity."""

    keypair: Keypair
    attestation: Attestation


@dataclass
class Deployment:
    """A relay that trials would share."""

    relay: EmbeddedRelay
    owner: Keypair
    port: int

    def party(self) -> Party:
        """Somebody whom the owner attests."""
        keys = Keypair.generate()
        return Party(keys, attest(self.owner, keys.pubkey))

    def view(self, port: int | None = None, lost_s: float = 30.0) -> ExternalRelay:
        """A trial's view, by way of another port if one is named."""
        gateway = ("127.0.0.1", port or self.port)
        return ExternalRelay(self.relay.url, gateway=gateway, lost_s=lost_s)


@asynccontextmanager
async def deployment(rates: Rates | None = None) -> AsyncIterator[Deployment]:
    """Serves one."""
    owner = Keypair.generate()
    limits = Limits() if rates is None else Limits(rates=rates)
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey, host=AUTHORITY, limits=limits)
    listener = listening()
    port: int = listener.getsockname()[1]
    await relay.serve(listener)
    try:
        yield Deployment(relay, owner, port)
    finally:
        await relay.close()


def listening(port: int = 0) -> socket.socket:
    """A listening socket of the loopback, which may take the place of one that was closed."""
    return socket.create_server(("127.0.0.1", port))
