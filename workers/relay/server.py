"""The embedded relay: aiohttp around a ``RelayCore``, on sockets that its owner opened."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path

from aiohttp import web

from workers.nostr.event import Event
from workers.relay.authentication import normalise_host
from workers.relay.bridge import Bridge, BridgeRequest
from workers.relay.client import RelayClient
from workers.relay.core import Observe, RelayCore, ignore
from workers.relay.dialling import port_of
from workers.relay.door import Door
from workers.relay.information import relay_information
from workers.relay.interface import Holder
from workers.relay.limits import Limits
from workers.relay.replay import Refusal
from workers.relay.replying import send_json
from workers.relay.state import RelayState
from workers.relay.websocket import Connections

ANY_HOST = "localhost"
"""Stands for the authority of a relay that takes any."""
UNKNOWN_HOST = "relay: no community is configured for this host"
_CLOSE_S = 2.0
_log = logging.getLogger(__name__)


class EmbeddedRelay:
    """One isolated relay: Buzz on the wire, state in memory, any number of listening sockets.

    Its one direct member is the owner; every other key needs the owner's attestation. It is a
    ``TrialRelay``.
    """

    sees_subscriptions = True
    is_shared = False
    loopback_name = None
    outages = 0

    def __init__(
        self,
        *,
        owner_pubkey: str,
        host: str | None = "localhost:3600",
        secure: bool = False,
        clock: Callable[[], float] = time.time,
        limits: Limits | None = None,
        observe: Observe = ignore,
    ) -> None:
        """A relay that holds nothing and listens nowhere.

        Args:
            owner_pubkey: the member whose attestations admit.
            host: the authority that clients must name in ``Host``; None takes any.
            secure: whether something before it ends TLS, so that clients sign ``wss``.
            clock: Unix seconds.
            limits: bounds other than Buzz's.
            observe: hears of every submitted event, for metrics.
        """
        authority = None if host is None else normalise_host(host)
        state = RelayState(owner_pubkey, authority, clock, secure, limits=limits or Limits())
        self._core = RelayCore(state, observe)
        self._bridge = Bridge(self._core)
        self._connections = Connections(self._core)
        self._listeners: list[tuple[asyncio.Server, web.AppRunner]] = []
        self._paths: list[Path] = []
        self._is_closing = False

    @property
    def url(self) -> str:
        """Its canonical address, by which agents dial it."""
        return self._url(self._core.state.host or ANY_HOST)

    @property
    def port(self) -> int:
        """Of that address."""
        return port_of(self.url)

    @property
    def trouble(self) -> str:
        """Why it does not serve; empty if it does."""
        return "" if self.is_serving else "the trial's relay has ended"

    @property
    def connections(self) -> int:
        """How many WebSocket connections are open."""
        return len(self._connections)

    @property
    def pubkey(self) -> str:
        """The relay's own key, which signs group state."""
        return self._core.state.keypair.pubkey

    @property
    def is_serving(self) -> bool:
        """Whether every socket that it was given still accepts connections."""
        return not self._is_closing and all(server.is_serving() for server, _ in self._listeners)

    async def serve(self, sock: socket.socket) -> None:
        """Also serves a listening socket, which is closed by ``close``."""
        loop = asyncio.get_running_loop()
        await self._listen(lambda door: loop.create_server(door, sock=sock))

    async def serve_unix(self, path: Path) -> None:
        """Also serves a Unix socket at a free path, which is removed by ``close``."""
        loop = asyncio.get_running_loop()
        await self._listen(lambda door: loop.create_unix_server(door, str(path)))
        self._paths.append(path)

    def client(self, holder: Holder) -> RelayClient:
        """A client that speaks as one of its identities, over its first Unix socket."""
        return RelayClient(self.url, holder.keypair, holder.attestation, unix_socket=self._paths[0])

    def timeline(self) -> list[Event]:
        """Every stored event, signed, in order of acceptance; nothing ever leaves it."""
        return self._core.state.store.timeline()

    def restore(self, events: Iterable[Event]) -> list[Refusal]:
        """Takes in what a relay once accepted, in its order; gives what was refused now.

        Signatures are verified again. What the relay itself signed is made anew.
        """
        return self._core.restore(events)

    def record(self, listener: Callable[[Event], None]) -> None:
        """Lets a listener hear of every event that is stored from now on."""
        self._core.state.store.listener = listener

    def last_activity(self) -> float:
        """``time.monotonic()`` of the last client message or accepted event."""
        return self._core.last_activity()

    async def watch(self, holder: Holder, channel_id: str) -> None:
        """Nothing to do: it sees every event that it accepts."""

    async def wait_subscribed(self, pubkey: str, channel_id: str, seconds: float) -> bool:
        """Whether a key has, or in time gets, a live subscription that a mention would reach.

        It is channel-scoped to that channel and its EOSE has been sent.
        """
        return await self._core.hub.wait(
            lambda held: held.pubkey == pubkey and held.wakes_on_mention(channel_id), seconds
        )

    async def wait_event(self, accept: Callable[[Event], bool], seconds: float) -> Event | None:
        """The first stored event, past or to come, that is accepted; None if none is in time."""
        return await self._core.wait_event(accept, seconds)

    async def close(self) -> None:
        """Ends every connection and closes the sockets it was given; bounded, may be repeated."""
        self._is_closing = True
        listeners, self._listeners = self._listeners, []
        for listener, _ in listeners:
            listener.close()
        for path in self._paths:
            path.unlink(missing_ok=True)
        try:
            async with asyncio.timeout(2 * _CLOSE_S):
                await self._connections.close()
                await asyncio.gather(*(runner.cleanup() for _, runner in listeners))
        except TimeoutError:
            _log.warning("relay %s: connections did not end in time", self.pubkey)

    async def _listen(self, start: Callable[[Door], Coroutine[None, None, asyncio.Server]]) -> None:
        """Begins to listen.

        Each listener counts its own connections, so that a container that uses up its own does
        not lock the harness out.
        """
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            shutdown_timeout=_CLOSE_S,
            keepalive_timeout=self._core.state.limits.request_s,  # also for the first head
        )
        await runner.setup()
        assert runner.server is not None  # set up above
        door = Door(runner.server, self._core.state.limits.connections)
        try:
            self._listeners.append((await start(door), runner))
        except OSError:
            await runner.cleanup()
            raise

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=self._core.state.limits.body_bytes)
        application.add_routes(
            [
                web.get("/", self._root),
                web.get("/info", self._information),
                web.get("/health", _alive),
                web.get("/_liveness", _alive),
                web.get("/_readiness", self._ready),
                *(web.post(path, self._post) for path in ("/events", "/query", "/count")),
            ]
        )
        return application

    async def _root(self, request: web.Request) -> web.StreamResponse:
        wants_document = "application/nostr+json" in request.headers.get("Accept", "")
        if wants_document or request.headers.get("Upgrade", "").lower() != "websocket":
            return await self._information(request)
        host = self._tenant(request)
        if host is None:
            return web.Response(status=404, text=UNKNOWN_HOST)
        if self._is_closing:
            return web.Response(status=503, text="relay restarting")
        return await self._connections.serve(request, self._url(host))

    async def _information(self, request: web.Request) -> web.Response:
        return web.json_response(
            relay_information(self._core.state), content_type="application/nostr+json"
        )

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        if self._is_closing:
            return await self._send(request, 503, {"status": "shutting_down"})
        return await self._send(request, 200, {"status": "ready"})

    async def _post(self, request: web.Request) -> web.StreamResponse:
        host = self._tenant(request)
        if host is None:
            return await self._send(request, 404, {"error": UNKNOWN_HOST})
        try:
            async with asyncio.timeout(self._core.state.limits.request_s):
                body = await request.read()
        except TimeoutError:
            return await self._send(request, 408, {"error": "request body took too long"})
        reply = self._bridge.handle(
            BridgeRequest(
                path=request.path,
                host=host,
                authorization=request.headers.get("Authorization"),
                auth_tag=request.headers.get("x-auth-tag"),
                body=body,
            )
        )
        return await self._send(request, reply.status, reply.body)

    def _url(self, host: str) -> str:
        return f"{'wss' if self._core.state.secure else 'ws'}://{host}"

    def _tenant(self, request: web.Request) -> str | None:
        """The authority that a request names, if it is this relay's."""
        host = normalise_host(request.headers.get("Host", ""))
        own = self._core.state.host
        return host if host and own in (None, host) else None

    async def _send(self, request: web.Request, status: int, body: object) -> web.StreamResponse:
        return await send_json(request, status, body, self._core.state.limits.response_s)


async def _alive(request: web.Request) -> web.Response:
    return web.Response(text="ok")
