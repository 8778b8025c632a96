"""NIP-42: whether an AUTH event proves a key to this relay."""

from __future__ import annotations

from urllib.parse import urlsplit

from workers.nostr.event import Event
from workers.nostr.tags import first
from workers.relay import kinds

_LOOPBACK = ("localhost", "::1", "127.0.0.1")
_DEFAULT_PORTS = {"ws": 80, "wss": 443}


def proves_key(event: Event, challenge: str, url: str, now: float, tolerance_s: int) -> bool:
    """The five checks of NIP-42, in Buzz's order.

    Args:
        event: what the client sent.
        challenge: what the relay sent.
        url: the relay's own address.
        now: Unix seconds.
        tolerance_s: how far the client's clock may be off.
    """
    return (
        event.kind == kinds.AUTH
        and event.verify()
        and first(event.tags, "challenge") == challenge
        and normalise_relay_url(first(event.tags, "relay") or "") == normalise_relay_url(url)
        and abs(event.created_at - now) <= tolerance_s
    )


def is_read_only(event: Event) -> bool:
    """Whether the client asked for a connection that may not publish."""
    return first(event.tags, "class") not in (None, "interactive")


def normalise_relay_url(url: str) -> tuple[str, str, int | None, str, str] | None:
    """A relay URL in the form that is compared, or None where it is none.

    All names of the loopback are one here, unlike in NIP-98.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname:
        return None
    host = "127.0.0.1" if parts.hostname in _LOOPBACK else parts.hostname
    if port == _DEFAULT_PORTS.get(parts.scheme):
        port = None
    return (parts.scheme, host, port, parts.path.rstrip("/"), parts.query)


def normalise_host(host: str) -> str:
    """An authority as tenants are told apart by: default ports and a trailing dot go."""
    host = host.strip().lower()
    for port in (":80", ":443"):
        if host.endswith(port):
            host = host[: -len(port)]
            break
    return host.removesuffix(".")
