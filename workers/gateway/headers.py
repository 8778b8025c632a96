"""Which headers pass the gateway, in both directions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from workers.contract.endpoint import Endpoint
from workers.gateway.secret import Secret, scrub

Headers = list[tuple[str, str]]

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Of one connection only (RFC 9110 §7.6.1), with those that ``Connection`` names."""

_NOT_SENT = HOP_BY_HOP | {
    "host",
    "content-length",
    "expect",
    "authorization",
    "x-api-key",
    "cookie",
    "forwarded",
    "accept-encoding",
}
ANTHROPIC_VERSION = "2023-06-01"
_UNSENDABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def token_of(headers: Iterable[tuple[str, str]]) -> str | None:
    """The token of a request: a bearer's, else ``x-api-key``."""
    found = {name.lower(): value for name, value in headers}
    scheme, _, token = found.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return found.get("x-api-key", "").strip() or None


def retry_of(headers: Iterable[tuple[str, str]]) -> int | None:
    """The number of the client's repeat, as the clients of OpenAI and Anthropic count it."""
    found = {name.lower(): value for name, value in headers}
    text = found.get("x-stainless-retry-count", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def upstream_headers(
    headers: Iterable[tuple[str, str]], endpoint: Endpoint, key: Secret | None, extra: Headers
) -> Headers:
    """The request's headers with the provider's key in the place of the trial's token.

    ``extra`` are the endpoint's own; they take the place of the agent's of the same name.
    """
    carrier = endpoint.key_header or (
        "x-api-key" if endpoint.provider == "anthropic" else "Authorization"
    )
    replaced = {carrier.lower(), *(name.lower() for name, _ in extra)}
    kept = [pair for pair in _passing(headers, _NOT_SENT) if pair[0].lower() not in replaced]
    # What is not compressed can be metered and searched for the key as it passes.
    kept.append(("Accept-Encoding", "identity"))
    if endpoint.provider == "anthropic" and not any(
        name.lower() == "anthropic-version" for name, _ in (*kept, *extra)
    ):
        kept.append(("anthropic-version", ANTHROPIC_VERSION))
    if key is not None:
        bearer = "Bearer " if carrier.lower() == "authorization" else ""
        kept.append((carrier, f"{bearer}{key.reveal()}"))
    return kept + extra


def response_headers(headers: Iterable[tuple[str, str]], secrets: Sequence[Secret]) -> Headers:
    """The answer's headers, without a key if a provider repeats one.

    An answer that came compressed all the same is passed on decoded, without its length.
    """
    pairs = list(headers)
    encoded = any(name.lower() == "content-encoding" for name, _ in pairs)
    dropped = HOP_BY_HOP | ({"content-encoding", "content-length"} if encoded else set())
    return [
        (scrub(name, secrets), scrub(value, secrets)) for name, value in _passing(pairs, dropped)
    ]


def _passing(headers: Iterable[tuple[str, str]], dropped: frozenset[str] | set[str]) -> Headers:
    pairs = list(headers)
    named = {
        word.strip().lower()
        for name, value in pairs
        if name.lower() == "connection"
        for word in value.split(",")
    }
    return [
        (name, value)
        for name, value in pairs
        if name.lower() not in dropped | named and is_sendable(name + value)
    ]


def is_sendable(text: str) -> bool:
    """Whether a text can be written into a head.

    Bytes that were no UTF-8 cannot, nor control characters but the tab (RFC 9110 §5.5).
    """
    return _UNSENDABLE.search(text) is None
