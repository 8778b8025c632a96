"""What a trial needs of its relay, be it one of ours or a deployment.

A container reaches its relay on its own loopback: the harness opens a socket there, at the port of
the relay's canonical address, and serves it with ``serve``.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from workers.nostr.attestation import Attestation
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay.client import RelayClient


class Holder(Protocol):
    """Whoever acts on a relay: a key, and its owner's word for it."""

    @property
    def keypair(self) -> Keypair:
        """The acting key."""
        ...

    @property
    def attestation(self) -> Attestation:
        """The owner's attestation of it (NIP-OA)."""
        ...


class TrialRelay(Protocol):
    """The relay of one trial."""

    @property
    def url(self) -> str:
        """``ws://authority`` or ``wss://authority``: what agents dial, and what they sign."""
        ...

    @property
    def port(self) -> int:
        """Of the socket on the container's loopback: that of the URL."""
        ...

    @property
    def loopback_name(self) -> str | None:
        """The URL's host, where a container must be told that it is its own loopback."""
        ...

    @property
    def sees_subscriptions(self) -> bool:
        """Whether ``wait_subscribed`` can tell; else readiness is read from an agent's log."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether others use it too."""
        ...

    @property
    def is_serving(self) -> bool:
        """Whether it still serves; once it does not, the trial cannot go on."""
        ...

    @property
    def trouble(self) -> str:
        """What stands between the trial and its relay right now; empty: nothing is known.

        A passing trouble leaves ``is_serving`` true, but explains an agent's death.
        """
        ...

    @property
    def outages(self) -> int:
        """How often the trial's channel could not be watched, or an agent not be carried."""
        ...

    @property
    def connections(self) -> int:
        """How many connections of agents are open."""
        ...

    def client(self, holder: Holder) -> RelayClient:
        """A client that speaks as one of the trial's identities, from the host."""
        ...

    async def serve(self, listener: socket.socket) -> None:
        """Also serves a listening socket, which is closed by ``close``."""
        ...

    async def watch(self, holder: Holder, channel_id: str) -> None:
        """Sees to it that every later event of the trial's channel is in ``timeline``.

        Args:
            holder: a member of the channel.
            channel_id: the trial's.

        Raises:
            RelayError: it cannot be watched.
        """
        ...

    async def wait_subscribed(self, pubkey: str, channel_id: str, seconds: float) -> bool:
        """Whether a key has, or in time gets, a live subscription that a mention would reach."""
        ...

    async def wait_event(self, accept: Callable[[Event], bool], seconds: float) -> Event | None:
        """The first event, past or to come, that is accepted; None if none is in time."""
        ...

    def last_activity(self) -> float:
        """``time.monotonic()`` of the last thing that was heard of the trial's agents."""
        ...

    def timeline(self) -> Sequence[Event]:
        """The trial's events, signed, in order of acceptance as far as it was seen."""
        ...

    async def close(self) -> None:
        """Ends every connection and closes the sockets it was given; bounded, may be repeated."""
        ...
