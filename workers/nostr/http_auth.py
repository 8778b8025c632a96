"""HTTP requests signed with a Nostr key (NIP-98), made and checked."""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from urllib.parse import urlsplit

from workers.nostr import strict_json
from workers.nostr.errors import EventFormatError, HttpAuthError, JsonError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.nostr.tags import first

AUTH_KIND = 27235
TOLERANCE_S = 60
_SCHEME = "Nostr "
_DEFAULT_PORTS = {"http": 80, "https": 443}


def authorize(keypair: Keypair, url: str, method: str, body: bytes, now: float) -> str:
    """An ``Authorization`` value for one request. Use it once: a relay refuses its id again."""
    event = Event.sign(
        keypair,
        AUTH_KIND,
        (
            ("u", url),
            ("method", method),
            ("nonce", str(uuid.uuid4())),
            ("payload", hashlib.sha256(body).hexdigest()),
        ),
        "",
        int(now),
    )
    return _SCHEME + base64.b64encode(event.to_json().encode()).decode()


def check(header: str | None, *, url: str, method: str, body: bytes, now: float) -> Event:
    """The verified event of an ``Authorization`` value.

    The caller still has to refuse an event id that it has seen before.

    Args:
        header: the value, or None where the request has none.
        url: the request's own address as the server knows it.
        method: the request's method.
        body: the request's body.
        now: Unix seconds.

    Raises:
        HttpAuthError: with the text that a relay answers.
    """
    event = _decode(header)
    if event.kind != AUTH_KIND:
        raise HttpAuthError(f"NIP-98: event kind must be {AUTH_KIND}")
    if not event.verify():
        raise HttpAuthError("NIP-98: invalid id or signature")
    if abs(event.created_at - now) > TOLERANCE_S:
        raise HttpAuthError("NIP-98: timestamp too far from server time")
    if normalise_url(first(event.tags, "u") or "") != normalise_url(url):
        raise HttpAuthError("NIP-98: URL mismatch")
    if (first(event.tags, "method") or "").upper() != method.upper():
        raise HttpAuthError("NIP-98: method mismatch")
    payload = first(event.tags, "payload")
    if payload is not None and body and payload != hashlib.sha256(body).hexdigest():
        raise HttpAuthError("NIP-98: payload hash mismatch")
    return event


def normalise_url(url: str) -> str | None:
    """A URL in the form that is compared, or None where it is none.

    Scheme and host are lower-cased, a default port and the path's trailing ``/`` go. The names
    of the loopback stay apart: ``localhost`` is not ``127.0.0.1`` (unlike in NIP-42).
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}{query}"


def _decode(header: str | None) -> Event:
    if header is None or not header.startswith(_SCHEME):
        raise HttpAuthError("missing Nostr auth")
    try:
        text = base64.b64decode(header[len(_SCHEME) :].strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise HttpAuthError("invalid base64 in Nostr auth") from error
    try:
        return Event.from_dict(strict_json.parse(text))
    except (JsonError, EventFormatError) as error:
        raise HttpAuthError(f"NIP-98: invalid event: {error}") from error
