"""The HTTP bridge: one request in, one status and JSON body out. No sockets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workers.nostr import http_auth, strict_json
from workers.nostr.attestation import Attestation
from workers.nostr.errors import (
    AttestationError,
    EventFormatError,
    FilterError,
    HttpAuthError,
    JsonError,
)
from workers.nostr.event import Event
from workers.relay import visibility
from workers.relay.core import RelayCore
from workers.relay.query import BridgeFilter

NOT_A_RELAY_MEMBER = {
    "error": "relay_membership_required",
    "message": "You must be a relay member to access this relay",
}


@dataclass(frozen=True)
class BridgeRequest:
    """What the bridge looks at."""

    path: str
    host: str
    """As the client sent it."""
    authorization: str | None
    auth_tag: str | None
    body: bytes


@dataclass(frozen=True)
class BridgeReply:
    """A status and a JSON value."""

    status: int
    body: Any


class Bridge:
    """Answers ``POST /events``, ``/query`` and ``/count`` for one relay."""

    def __init__(self, core: RelayCore) -> None:
        self._core = core
        self._actions: dict[str, Callable[[BridgeRequest, str], BridgeReply]] = {
            "/events": self._events,
            "/query": self._query,
            "/count": self._count,
        }

    def handle(self, request: BridgeRequest) -> BridgeReply:
        """Authenticates a request and runs it."""
        self._core.touch()
        self._core.refresh()
        scheme = "https" if self._core.state.secure else "http"
        try:
            proof = http_auth.check(
                request.authorization,
                url=f"{scheme}://{request.host}{request.path}",
                method="POST",
                body=request.body,
                now=self._core.state.clock(),
            )
        except HttpAuthError as error:
            return _error(401, str(error))
        limited = self._core.meters.api.refusal(proof.pubkey)
        if limited is not None:
            return _error(429, limited)
        if not self._core.claim_auth(proof.id):
            return _error(401, "NIP-98: replay detected")
        return self._actions[request.path](request, proof.pubkey)

    def _events(self, request: BridgeRequest, caller: str) -> BridgeReply:
        try:
            event = Event.from_dict(strict_json.parse(request.body))
        except (JsonError, EventFormatError) as error:
            return _error(400, f"invalid event JSON: {error}")
        if not self._is_member(request, caller, record=True):
            return BridgeReply(403, NOT_A_RELAY_MEMBER)
        answer = self._core.submit(event, caller, over_http=True)
        if answer.status != 200:
            return _error(answer.status, answer.message)
        return BridgeReply(
            200,
            {"event_id": event.id, "accepted": answer.accepted, "message": answer.message},
        )

    def _query(self, request: BridgeRequest, caller: str) -> BridgeReply:
        filters = self._filters(request, caller)
        if isinstance(filters, BridgeReply):
            return filters
        if filters and all(wanted.asks_presence for wanted in filters):
            return BridgeReply(200, self._presence(filters))
        fault = self._gate(filters, caller)
        if fault is not None:
            return fault
        try:
            found = self._core.queries.bridge(filters, caller)
        except FilterError as error:
            return _error(400, f"invalid filters: {error}")
        return BridgeReply(200, [event.to_dict() for event in found])

    def _count(self, request: BridgeRequest, caller: str) -> BridgeReply:
        filters = self._filters(request, caller)
        if isinstance(filters, BridgeReply):
            return filters
        fault = self._gate(filters, caller)
        if fault is not None:
            return fault
        plain = [wanted.filter for wanted in filters]
        return BridgeReply(200, {"count": self._core.queries.count(plain, caller)})

    def _filters(self, request: BridgeRequest, caller: str) -> list[BridgeFilter] | BridgeReply:
        if not self._is_member(request, caller, record=False):
            return BridgeReply(403, NOT_A_RELAY_MEMBER)
        try:
            data = strict_json.parse(request.body)
            if not isinstance(data, list):
                raise FilterError("a JSON array of filters is needed")
            filters = [BridgeFilter.from_dict(item) for item in data]
        except (JsonError, FilterError) as error:
            return _error(400, f"invalid filters: {error}")
        limits = self._core.state.limits
        if len(filters) > limits.filters:
            return _error(400, "too many filters")
        named = sum(len(wanted.filter.channels() or ()) for wanted in filters)
        if named > limits.explicit_channels:
            return _error(400, "too many explicit channels")
        return filters

    def _gate(self, filters: list[BridgeFilter], caller: str) -> BridgeReply | None:
        plain = [wanted.filter for wanted in filters]
        reason = visibility.gate_fault(plain, caller, visibility.P_GATED_HTTP)
        return None if reason is None else _error(403, reason)

    def _presence(self, filters: list[BridgeFilter]) -> list[dict[str, Any]]:
        """One event per present key, however often it is asked for."""
        asked = {key: None for wanted in filters for key in sorted(wanted.filter.authors or ())}
        present = self._core.state.presence
        return [
            self._core.announcer.presence(key, present[key]).to_dict()
            for key in asked
            if key in present
        ]

    def _is_member(self, request: BridgeRequest, caller: str, *, record: bool) -> bool:
        attestation: Attestation | None = None
        if request.auth_tag:
            try:
                attestation = Attestation.from_text(request.auth_tag)
            except AttestationError:
                attestation = None  # a malformed attestation counts as none (Buzz)
        return self._core.admit(caller, attestation, record=record)


def _error(status: int, reason: str) -> BridgeReply:
    return BridgeReply(status, {"error": reason})
