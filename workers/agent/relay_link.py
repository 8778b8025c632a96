"""The agent's WebSocket to the relay: authenticate, subscribe, and stay subscribed.

One thread. Events leave by a callback, each id once. The rules of what to do on a refusal are
buzz-acp's, in ``relay_rules``.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from workers.agent import journal
from workers.agent.identity import Identity
from workers.agent.relay_rules import (
    CHANNEL_KINDS,
    LOOK_BACK_S,
    MEMBERSHIP,
    MEMBERSHIP_KINDS,
    Reaction,
    Seen,
    channel_subscription,
    reaction,
)
from workers.agent.websocket import LinkError, ReceiveTimeout, WebSocket
from workers.nostr.errors import NostrError
from workers.nostr.event import Event

FIRST_CONNECT_S = 30.0
FIRST_RETRY_S = 0.005
STEP_S = 20.0
"""For the challenge, and for the answer to AUTH."""
PING_S = 30.0
PONG_S = 10.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
RATE_LIMIT_PAUSE_S = 1.0
_RECONNECT_S = (1.0, 2.0, 4.0, 8.0, 16.0)


class RelayRefused(Exception):
    """The relay does not admit this identity; trying again cannot help."""


class Listener(Protocol):
    """Whoever wants to know what comes over the link; called on the link's thread."""

    def arrived(self, subscription: str, event: Event) -> None:
        """A verified event that was not seen before."""
        ...

    def live(self, subscription: str) -> None:
        """The stored events of a subscription are through."""
        ...


@dataclass
class _Subscription:
    filter: dict[str, Any]
    since: int


class RelayLink:
    """Keeps one identity subscribed. ``run`` is the thread's body.

    Args:
        url: dialled as it is, and signed into AUTH.
        identity: who connects.
        channels: subscribed to from the start.
        since: Unix seconds from which stored events are wanted; five seconds of slack are ours.
        listener: gets the events.
        sleep: how to wait before the next attempt to connect.
    """

    def __init__(
        self,
        url: str,
        identity: Identity,
        channels: Iterable[str],
        since: float,
        listener: Listener,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = url
        self._identity = identity
        self._listener = listener
        self._sleep = sleep
        self._seen = Seen()
        self._lock = threading.Lock()
        self._link: WebSocket | None = None
        self._subscriptions: dict[str, _Subscription] = {}
        start = int(since) - LOOK_BACK_S
        self._add(MEMBERSHIP, {"kinds": MEMBERSHIP_KINDS}, start)
        for channel in channels:
            self._add(*self._channel(channel), start)

    def _channel(self, channel: str) -> tuple[str, dict[str, Any]]:
        return channel_subscription(channel), {"kinds": CHANNEL_KINDS, "#h": [channel]}

    def _add(self, name: str, filter_: dict[str, Any], since: int) -> None:
        mine = {**filter_, "#p": [self._identity.pubkey]}
        self._subscriptions[name] = _Subscription(mine, since)

    def subscribe(self, channel: str, since: int) -> None:
        """Adds a channel, from any thread; a known one stays as it is."""
        with self._lock:
            name, filter_ = self._channel(channel)
            if name in self._subscriptions:
                return
            self._add(name, filter_, since)
            if self._link is not None:
                self._request(self._link, name)

    def unsubscribe(self, channel: str) -> None:
        """Drops a channel, from any thread."""
        with self._lock:
            name = channel_subscription(channel)
            if self._subscriptions.pop(name, None) is not None and self._link is not None:
                self._send(self._link, ["CLOSE", name])

    def run(self) -> None:
        """Connects and listens for ever.

        Raises:
            RelayRefused: the relay does not admit this identity.
            LinkError: the first connection could not be made within 30 seconds.
        """
        link = self._connect_first()
        failures = 0
        while True:
            started = time.monotonic()
            try:
                self._serve(link)
            except LinkError as error:
                journal.write(f"connection to the relay lost: {error}")
            finally:
                with self._lock:
                    self._link = None
                link.close()
            failures = 0 if time.monotonic() - started > PING_S else failures
            link, failures = self._reconnect(failures)

    def _connect_first(self) -> WebSocket:
        """Dials until the listener exists: it is opened just after the container starts."""
        deadline = time.monotonic() + FIRST_CONNECT_S
        while True:
            try:
                return WebSocket.connect(self._url, STEP_S, MAX_MESSAGE_BYTES)
            except LinkError:
                if time.monotonic() > deadline:
                    raise
            self._sleep(FIRST_RETRY_S)

    def _reconnect(self, failures: int) -> tuple[WebSocket, int]:
        while True:
            pause = _RECONNECT_S[min(failures, len(_RECONNECT_S) - 1)]
            self._sleep(pause * random.uniform(0.8, 1.2))
            failures += 1
            try:
                return WebSocket.connect(self._url, STEP_S, MAX_MESSAGE_BYTES), failures
            except LinkError as error:
                journal.write(f"no connection to the relay: {error}")

    def _serve(self, link: WebSocket) -> None:
        """Authenticates, subscribes and listens until the connection ends."""
        self._authenticate(link)
        with self._lock:
            self._link = link
            for name in self._subscriptions:
                self._request(link, name)
        while True:
            self._handle(link, self._receive(link))

    def _authenticate(self, link: WebSocket) -> None:
        """Answers the relay's challenge, which comes first (NIP-42).

        Raises:
            RelayRefused: refused, and not for a passing reason.
        """
        challenge = self._expect(link, "AUTH")[1]
        auth = self._identity.answer_challenge(str(challenge), self._url)
        self._send(link, ["AUTH", auth.to_dict()])
        verdict = self._expect(link, "OK")
        if verdict[2] is True:
            journal.write(f"connected to relay at {self._url}")
            return
        text = str(verdict[3])
        if text.startswith("error:"):
            raise LinkError(f"authentication failed: {text}")
        raise RelayRefused(f"the relay at {self._url} refused the agent's key: {text}")

    def _expect(self, link: WebSocket, verb: str) -> list[Any]:
        """The next message of a kind, passing over others; its length is checked."""
        deadline = time.monotonic() + STEP_S
        while True:
            remaining = deadline - time.monotonic()
            try:
                message = _decode(link.receive(max(remaining, 0.001)))
            except ReceiveTimeout as error:
                raise LinkError(f"the relay sent no {verb} in {STEP_S:g} s") from error
            if message[:1] == [verb] and len(message) >= (4 if verb == "OK" else 2):
                return message

    def _receive(self, link: WebSocket) -> list[Any]:
        """The next message; pings a silent relay, and gives a mute one up."""
        while True:
            try:
                return _decode(link.receive(PING_S))
            except ReceiveTimeout:
                asked = time.monotonic()
                link.ping()
            try:
                return _decode(link.receive(PONG_S))
            except ReceiveTimeout as error:
                if link.heard_at < asked:
                    raise LinkError(f"no pong in {PONG_S:g} s") from error

    def _handle(self, link: WebSocket, message: list[Any]) -> None:
        verb = message[0] if message else ""
        if verb == "EVENT" and len(message) >= 3:
            self._take(str(message[1]), message[2])
        elif verb == "EOSE" and len(message) >= 2:
            self._listener.live(str(message[1]))
        elif verb == "CLOSED" and len(message) >= 3:
            self._closed(link, str(message[1]), str(message[2]))
        elif verb == "AUTH" and len(message) >= 2:
            auth = self._identity.answer_challenge(str(message[1]), self._url)
            self._send(link, ["AUTH", auth.to_dict()])
        elif verb == "OK" and len(message) >= 4 and message[2] is not True:
            if str(message[3]).startswith("auth"):
                raise LinkError(f"the relay wants authentication: {message[3]}")
        elif verb == "NOTICE":
            journal.write(f"relay notice: {message[1:2]}")

    def _take(self, name: str, data: Any) -> None:
        try:
            event = Event.from_dict(data)
        except NostrError as error:
            journal.write(f"the relay sent something that is no event: {error}")
            return
        if not self._seen.is_new(event.id):
            return
        if not event.verify():
            journal.write(f"event {event.id} does not verify")
            return
        with self._lock:
            subscription = self._subscriptions.get(name)
            if subscription is not None:
                subscription.since = max(subscription.since, event.created_at - LOOK_BACK_S)
        if subscription is not None:
            self._listener.arrived(name, event)

    def _closed(self, link: WebSocket, name: str, reason: str) -> None:
        with self._lock:
            if name not in self._subscriptions:
                return
            journal.write(f"subscription {name} closed by the relay: {reason}")
            wanted = reaction(reason)
            if wanted is Reaction.FORGET:
                del self._subscriptions[name]
        if wanted is Reaction.RECONNECT:
            raise LinkError(f"subscription closed: {reason}")
        if wanted is Reaction.BACK_OFF:
            self._sleep(RATE_LIMIT_PAUSE_S)
        if wanted is not Reaction.FORGET:
            with self._lock:
                self._request(link, name)

    def _request(self, link: WebSocket, name: str) -> None:
        """Sends the REQ of a subscription; call it with the lock held."""
        subscription = self._subscriptions[name]
        self._send(link, ["REQ", name, {**subscription.filter, "since": subscription.since}])

    def _send(self, link: WebSocket, message: list[Any]) -> None:
        link.send(json.dumps(message, separators=(",", ":"), ensure_ascii=False))


def _decode(text: str) -> list[Any]:
    """A relay's message, or an empty list if it is none."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        journal.write("the relay sent something that is not JSON")
        return []
    return message if isinstance(message, list) else []
