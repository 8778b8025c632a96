"""A Buzz deployment as the relay of one trial.

Agents dial its canonical address; on their container's loopback a ``Forwarder`` carries their
bytes to it. The harness acts over HTTP and watches the trial's channel as its user.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from workers.nostr.event import Event
from workers.relay.client import RelayClient
from workers.relay.core import Observe, ignore
from workers.relay.dialling import port_of
from workers.relay.errors import RelayError, RelayUnreachableError
from workers.relay.feed import Feed
from workers.relay.forwarder import Forwarder
from workers.relay.interface import Holder

_OWN_NAMES = ("localhost", "127.0.0.1")
CLIENT_S = 60.0
"""Of each request, so that a quota of a minute can be waited for."""


class ExternalRelay:
    """One trial's view of a deployment; it is a ``TrialRelay``."""

    sees_subscriptions = False
    is_shared = True

    def __init__(
        self,
        url: str,
        *,
        gateway: tuple[str, int] | None = None,
        lost_s: float = 30.0,
        observe: Observe = ignore,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: the canonical address, ``ws://`` or ``wss://``, host and port.
            gateway: host and port to connect to in its place.
            lost_s: after so long without the relay the trial cannot go on.
            observe: hears of every event of the trial's channel.
        """
        self.url = url.rstrip("/")
        self._host = urlsplit(self.url).hostname or ""
        self._lost_s = lost_s
        self._observe = observe
        self._gateway = gateway
        self.port = port_of(self.url)
        self._forwarder = Forwarder(*(gateway or (self._host, self.port)))
        self._feed: Feed | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def loopback_name(self) -> str | None:
        """The URL's host, which is the container's own loopback."""
        return None if self._host in _OWN_NAMES else self._host

    @property
    def is_serving(self) -> bool:
        """Whether the relay is there, or was until a short while ago."""
        if self._is_closing or not self._forwarder.is_serving:
            return False
        if self._watching is not None and self._watching.done():
            return False
        return self._feed is None or self._feed.down_s < self._lost_s

    @property
    def trouble(self) -> str:
        """Why it is not there now; empty if it is."""
        if self._is_closing:
            return "closed"
        if self._feed is not None and self._feed.trouble:
            return f"{self._feed.trouble} (for {self._feed.down_s:.1f} s)"
        return self._forwarder.failed

    @property
    def outages(self) -> int:
        """How often the channel could not be watched, or an agent not be carried."""
        return self._forwarder.failures + (0 if self._feed is None else self._feed.breaks)

    @property
    def connections(self) -> int:
        """How many connections of agents are carried."""
        return self._forwarder.connections

    def client(self, holder: Holder) -> RelayClient:
        """A client that speaks as one of the trial's identities."""
        return RelayClient(
            self.url,
            holder.keypair,
            holder.attestation,
            gateway=self._gateway,
            timeout_s=CLIENT_S,
        )

    async def serve(self, listener: socket.socket) -> None:
        """Also carries what comes to a listening socket, which is closed by ``close``."""
        await self._forwarder.serve(listener)

    async def watch(self, holder: Holder, channel_id: str) -> None:
        """Follows the trial's channel from now on; returns when nothing more can be missed.

        Raises:
            RelayRefusedError: the relay does not let this key listen.
        """
        feed = self._feed = Feed(self.url, self._gateway, holder, channel_id, self._observe)
        watching = self._watching = asyncio.create_task(feed.run())
        live = asyncio.create_task(feed.live())
        try:
            await asyncio.wait({watching, live}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            live.cancel()
        if watching.done():
            watching.result()

    async def wait_subscribed(self, pubkey: str, channel_id: str, seconds: float) -> bool:
        """No deployment tells who listens; ``sees_subscriptions`` says so."""
        raise NotImplementedError

    async def wait_event(self, accept: Callable[[Event], bool], seconds: float) -> Event | None:
        """The first event of the channel, past or to come, that is accepted."""
        if self._feed is None:
            raise RelayUnreachableError("the trial's channel is not watched")
        return await self._feed.wait(accept, seconds)

    def last_activity(self) -> float:
        """``time.monotonic()`` of the last message of an agent, or of the channel."""
        heard = self._forwarder.moved_at
        return heard if self._feed is None else max(heard, self._feed.moved_at)

    def timeline(self) -> Sequence[Event]:
        """The channel's events in order of arrival."""
        return () if self._feed is None else self._feed.events()

    async def close(self) -> None:
        """Stops watching and carrying; bounded, may be repeated."""
        self._is_closing = True
        watching = self._watching
        if watching is not None and not watching.done():
            watching.cancel()
            await asyncio.wait({watching}, timeout=2.0)
        await self._forwarder.close()
        if watching is not None and watching.done():
            # A relay's refusal was told by ``trouble`` while it mattered.
            with suppress(asyncio.CancelledError, RelayError):
                watching.result()
