"""Addresses: a relay's HTTP address, and what is dialled for a name."""

from __future__ import annotations


def http_base(relay_url: str) -> str:
    """A relay's HTTP address: ``ws`` becomes ``http``, trailing slashes go."""
    if relay_url.startswith(("ws://", "wss://")):
        relay_url = "http" + relay_url[2:]
    return relay_url.rstrip("/")


def dial_host(host: str) -> str:
    """What to connect to for a host; ``Host`` headers and signatures keep the name.

    Listeners are on 127.0.0.1. Asking for ``localhost`` may try ``::1`` first, or ask a name
    server that a sealed container does not reach.
    """
    return "127.0.0.1" if host == "localhost" else host
