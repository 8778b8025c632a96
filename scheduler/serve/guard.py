"""Who may see the pages, and what a browser may do with them.

Transcripts, logs and file names come out of containers and may be hostile: nothing is loaded
from elsewhere, no script runs but our one file, and raw files are text in a sandbox.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

COOKIE = "apiary_token"

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
)
"""A report is one file with its style inside; it has no script."""
RAW_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"


def headers(policy: str) -> dict[str, str]:
    """The headers of every answer."""
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def is_loopback(address: str) -> bool:
    """Whether an address to listen on is reached from this machine only."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def is_own_name(host_header: str) -> bool:
    """Whether a request to a loopback address names one.

    A page elsewhere can make its own name resolve to 127.0.0.1 (DNS rebinding): its requests
    then carry that name.
    """
    try:
        host = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:  # a bracket that is not closed, or nothing of an address inside
        return False
    return is_loopback(host)


def admits(token: str | None, request: Mapping[str, str], cookie: str | None) -> bool:
    """Whether a request carries the token, as a bearer token (RFC 6750) or as our cookie.

    Args:
        token: the one needed; null: none is.
        request: the request's headers.
        cookie: the value of ``COOKIE``.
    """
    if token is None:
        return True
    scheme, _, given = request.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        given = cookie or ""
    return same(given.strip(), token)


def same(given: str, token: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode("utf-8", "replace"))
