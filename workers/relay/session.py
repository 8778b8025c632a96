"""One WebSocket connection's protocol state: message in, replies out. No sockets.

NIP-01 and NIP-42 as Buzz speaks them: the relay speaks first, and before a client has proved its
key it is told nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from workers.nostr import attestation, strict_json
from workers.nostr.errors import EventFormatError, FilterError, JsonError
from workers.nostr.event import Event
from workers.nostr.filters import Filter
from workers.relay import authentication, visibility
from workers.relay.core import RelayCore
from workers.relay.hub import Subscription
from workers.relay.outbox import Delivery, Outbox
from workers.relay.query import BridgeFilter

NOT_AUTHENTICATED = "auth-required: not authenticated"
NOT_A_CHANNEL_MEMBER = "restricted: not a channel member"


class Session:
    """One client's conversation with the relay."""

    def __init__(self, core: RelayCore, url: str, outbox: Outbox) -> None:
        """Begins with nothing said; call ``open``.

        Args:
            core: the relay.
            url: this relay's address as the client's request names it (``ws://host``).
            outbox: takes what is to be sent.
        """
        self.challenge = secrets.token_hex(32)
        self.pubkey: str | None = None
        """The proven key."""
        self.is_read_only = False
        self._has_failed = False
        self._core = core
        self._url = url
        self._outbox = outbox
        self._subscriptions: dict[str, Subscription] = {}
        self._verbs: dict[str, Callable[[list[Any]], None]] = {
            "AUTH": self._auth,
            "EVENT": self._event,
            "REQ": self._req,
            "COUNT": self._count,
            "CLOSE": self._close_subscription,
        }

    def open(self) -> None:
        """Sends the challenge."""
        self._send("AUTH", self.challenge)

    def receive(self, text: str | bytes) -> None:
        """Takes one message; every answer to it has gone to the outbox when this returns."""
        self._core.touch()
        try:
            message = strict_json.parse(text)
            if not isinstance(message, list) or not message:
                raise JsonError("a message is a JSON array")
            verb = self._verbs.get(message[0]) if isinstance(message[0], str) else None
            if verb is None:
                raise JsonError("unknown message type")
            self._core.refresh()
            verb(message)
        except (JsonError, EventFormatError, FilterError) as error:
            self.notice(f"invalid message: {error}")

    def notice(self, text: str) -> None:
        """Sends a ``NOTICE``."""
        self._send("NOTICE", text)

    def close(self) -> None:
        """Ends all subscriptions; the connection is gone."""
        for subscription in self._subscriptions.values():
            self._core.hub.remove(subscription)
        self._subscriptions.clear()
        if self.pubkey is not None and not self.is_read_only:
            self._core.left(self.pubkey)

    def _auth(self, message: list[Any]) -> None:
        event = Event.from_dict(message[1] if len(message) == 2 else None)
        reason = self._auth_fault(event)
        if reason is not None:
            self._ok(event, False, reason)
            return
        self.pubkey = event.pubkey
        self.is_read_only = authentication.is_read_only(event)
        if not self.is_read_only:
            self._core.joined(self.pubkey)
        self._ok(event, True, "class: read-only" if self.is_read_only else "")

    def _auth_fault(self, event: Event) -> str | None:
        if self.pubkey is not None:
            return "auth-required: already authenticated"
        if self._has_failed:
            return "auth-required: authentication already failed"
        state = self._core.state
        self._has_failed = True
        if not authentication.proves_key(
            event, self.challenge, self._url, state.clock(), state.limits.auth_tolerance_s
        ):
            return "auth-required: verification failed"
        if not self._core.admit(event.pubkey, attestation.find(event.tags), record=True):
            return "restricted: not a relay member"
        self._has_failed = False
        return None

    def _event(self, message: list[Any]) -> None:
        event = Event.from_dict(message[1] if len(message) == 2 else None)
        if self.pubkey is None:
            self._ok(event, False, NOT_AUTHENTICATED)
        elif self.is_read_only:
            self._ok(event, False, "restricted: read-only connection may not publish")
        else:
            limited = self._core.meters.frames.refusal(self.pubkey)
            if limited is not None:
                self.notice(limited)
                return
            answer = self._core.submit(event, self.pubkey, over_http=False)
            if answer.status == 429:
                self.notice(answer.message)
            else:
                self._ok(event, answer.accepted, answer.message)

    def _req(self, message: list[Any]) -> None:
        name = self._subscription_name(message)
        if self.pubkey is None:
            self.notice("auth-required: authenticate before subscribing")
            self._closed(name, NOT_AUTHENTICATED)
            return
        limited = self._core.meters.frames.refusal(self.pubkey)
        if limited is not None:
            self._closed(name, limited)
            return
        # NIP-01: a REQ of a known name replaces that subscription, whatever becomes of it.
        self._forget(name)
        filters = self._filters(message)
        reason = self._req_fault(filters)
        if len(self._subscriptions) >= self._core.state.limits.subscriptions:
            reason = "error: too many subscriptions"
        if reason is not None:
            self._closed(name, reason)
            return
        channels = self._readable_scope(filters)
        if channels is not None and not channels:
            self._closed(name, NOT_A_CHANNEL_MEMBER)
            return
        self._send_stored(name, filters)
        self._send("EOSE", name)
        if filters[0].search is None:
            self._subscribe(name, filters, channels)

    def _req_fault(self, filters: tuple[Filter, ...]) -> str | None:
        limits = self._core.state.limits
        searches = sum(wanted.search is not None for wanted in filters)
        if len(filters) > limits.filters:
            return "error: too many filters"
        if sum(len(wanted.channels() or ()) for wanted in filters) > limits.explicit_channels:
            return "restricted: too many explicit channels"
        if 0 < searches < len(filters):
            return "error: mixed search and non-search filters not supported"
        return visibility.gate_fault(filters, self.pubkey or "", visibility.P_GATED_WS)

    def _readable_scope(self, filters: tuple[Filter, ...]) -> frozenset[str] | None:
        scope = visibility.scope_of(filters)
        readable = self._core.state.groups.readable(self.pubkey or "")
        return None if scope is None else scope & readable

    def _send_stored(self, name: str, filters: tuple[Filter, ...]) -> None:
        sent: set[str] = set()
        caller = self.pubkey or ""
        for wanted in filters:
            if wanted.search is None:
                found = self._core.queries.stored(wanted, caller)
            else:
                found = self._core.queries.search(BridgeFilter(wanted), caller)
            for stored in found:
                if stored.event.id not in sent:
                    sent.add(stored.event.id)
                    self._outbox.reply(Delivery(name, stored.event))

    def _subscribe(
        self, name: str, filters: tuple[Filter, ...], channels: frozenset[str] | None
    ) -> None:
        subscription = Subscription(
            pubkey=self.pubkey or "",
            filters=filters,
            channels=channels,
            deliver=lambda stored: self._outbox.push(Delivery(name, stored.event)),
            revoke=lambda reason: self._revoked(name, reason),
        )
        self._subscriptions[name] = subscription
        self._core.hub.add(subscription)

    def _count(self, message: list[Any]) -> None:
        name = self._subscription_name(message)
        if self.pubkey is None:
            self._closed(name, NOT_AUTHENTICATED)
            return
        limited = self._core.meters.frames.refusal(self.pubkey)
        if limited is not None:
            self.notice(limited)
            return
        filters = self._filters(message)
        reason = self._req_fault(filters)
        if reason is not None:
            self._closed(name, reason)
            return
        self._send("COUNT", name, {"count": self._core.queries.count(filters, self.pubkey)})

    def _close_subscription(self, message: list[Any]) -> None:
        name = self._subscription_name(message)
        self._forget(name)
        self._closed(name, "")

    def _subscription_name(self, message: list[Any]) -> str:
        name = message[1] if len(message) >= 2 else None
        limit = self._core.state.limits.subscription_id_bytes
        if not isinstance(name, str) or not 1 <= _utf8_size(name) <= limit:
            raise JsonError(f"a subscription id has 1 to {limit} bytes")
        return name

    def _filters(self, message: list[Any]) -> tuple[Filter, ...]:
        if len(message) < 3:
            raise FilterError("at least one filter is needed")
        return tuple(Filter.from_dict(data) for data in message[2:])

    def _forget(self, name: str) -> None:
        subscription = self._subscriptions.pop(name, None)
        if subscription is not None:
            self._core.hub.remove(subscription)

    def _revoked(self, name: str, reason: str) -> None:
        self._subscriptions.pop(name, None)
        self._closed(name, reason)

    def _ok(self, event: Event, accepted: bool, message: str) -> None:
        self._send("OK", event.id, accepted, message)

    def _closed(self, name: str, reason: str) -> None:
        self._send("CLOSED", name, reason)

    def _send(self, *parts: Any) -> None:
        self._outbox.reply(strict_json.dump(parts))


def _utf8_size(text: str) -> int:
    """Length in UTF-8; a text that has none (a lone surrogate) is longer than any limit."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return 1 << 30
