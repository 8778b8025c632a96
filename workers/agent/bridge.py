"""The relay's HTTP bridge: queries and publications, signed anew for every attempt (NIP-98)."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.agent import http_post
from workers.agent.identity import Identity
from workers.nostr.errors import NostrError
from workers.nostr.event import Event

ATTEMPTS = 3
PAGE_LIMIT = 500
_JITTER_S = (0.5, 1.5)
_HINT = re.compile(r"retry in (\d+)s")
_HINT_CAP_S = 30.0
_RETRIED = (429, 502, 503, 504)

Filter = Mapping[str, Any]


class BridgeError(Exception):
    """The relay refused or could not be reached, for good.

    Attributes:
        status: HTTP status of a refusal; 0: there was no whole answer.
        unsent: it is certain that the relay has not acted.
    """

    def __init__(self, message: str, *, status: int = 0, unsent: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.unsent = unsent


@dataclass(frozen=True)
class Written:
    """What the relay said to an event."""

    event_id: str
    accepted: bool
    message: str


class Bridge:
    """One identity's access to a relay's bridge.

    Args:
        base_url: ``http://…`` without a slash at its end; signed into every request.
        identity: who asks.
        timeout_s: of one attempt.
        connect_timeout_s: of one connection.
        sleep: how to wait between attempts.
        jitter: a random number from 0 to 1.
    """

    def __init__(
        self,
        base_url: str,
        identity: Identity,
        *,
        timeout_s: float = 30.0,
        connect_timeout_s: float = 15.0,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.identity = identity
        self._base = base_url
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._sleep = sleep
        self._jitter = jitter

    def query(self, *filters: Filter) -> list[Event]:
        """The relay's events for some filters, in its order; doubles between filters are kept.

        Raises:
            BridgeError: refused or unreachable.
        """
        data = self._post("/query", json.dumps(filters).encode())
        if not isinstance(data, list):
            raise BridgeError("the relay's answer to a query is no list")
        try:
            return [Event.from_dict(item) for item in data]
        except NostrError as error:
            raise BridgeError(f"the relay sent something that is no event: {error}") from error

    def query_all(self, filter_: Filter) -> list[Event]:
        """All events of one filter, page by page."""
        found: list[Event] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.query({**filter_, **cursor, "limit": PAGE_LIMIT})
            found.extend(page)
            if len(page) < PAGE_LIMIT:
                return found
            cursor = {"until": page[-1].created_at, "before_id": page[-1].id}

    def publish(self, event: Event) -> Written:
        """Hands an event to the relay; the same bytes in every attempt.

        Raises:
            BridgeError: refused, unreachable, or (``status`` 0 and not ``unsent``) unknown.
        """
        data = self._post("/events", event.to_json().encode())
        if not isinstance(data, dict):
            raise BridgeError("the relay's answer to an event is no object")
        return Written(
            str(data.get("event_id", event.id)),
            bool(data.get("accepted")),
            str(data.get("message", "")),
        )

    def _post(self, path: str, body: bytes) -> Any:
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(path, body)
            except BridgeError as error:
                if attempt == ATTEMPTS or (error.status and error.status not in _RETRIED):
                    raise
                self._sleep(self._wait_s(error, attempt))

    def _wait_s(self, error: BridgeError, attempt: int) -> float:
        """The relay's own hint where it gave one, else full jitter."""
        hint = _HINT.search(str(error)) if error.status == 429 else None
        if hint is not None:
            return min(float(hint.group(1)), _HINT_CAP_S)
        return self._jitter() * _JITTER_S[min(attempt, 2) - 1]

    def _attempt(self, path: str, body: bytes) -> Any:
        url = self._base + path
        try:
            response = http_post.post(
                url,
                self.identity.http_headers(url, body),
                body,
                timeout_s=self._timeout_s,
                connect_timeout_s=self._connect_timeout_s,
            )
        except http_post.HttpError as error:
            raise BridgeError(str(error), unsent=error.fault == "connect") from error
        if response.status != 200:
            raise BridgeError(
                f"relay error {response.status}: {_reason(response.body)}",
                status=response.status,
                unsent=response.status == 429,
            )
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise BridgeError("the relay's answer is not JSON") from error


def replies_of(data: Sequence[Event], kind: int) -> list[Event]:
    """The events of one kind among the answers to several filters."""
    return [event for event in data if event.kind == kind]


def _reason(body: bytes) -> str:
    """The ``error`` or ``message`` of an answer, else its text."""
    text = body[:4096].decode(errors="replace")
    try:
        data = json.loads(text)
    except ValueError:
        return text
    if isinstance(data, dict):
        return str(data.get("error") or data.get("message") or text)
    return text
