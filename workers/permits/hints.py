"""What a provider's headers say about its rate. Pure.

Read are ``Retry-After`` in seconds or as a date (RFC 9110 §10.2.3), ``retry-after-ms`` (Azure,
OpenAI), and the allowance of a minute: ``x-ratelimit-limit-requests`` and ``-tokens`` (OpenAI and
those who follow it), ``anthropic-ratelimit-requests-limit`` and ``-tokens-limit``. Not read is
what remains: in a cluster that number is old before it arrives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

MINUTE_S = 60.0
_REQUESTS = ("x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit")
_TOKENS = ("x-ratelimit-limit-tokens", "anthropic-ratelimit-tokens-limit")


class Hints(NamedTuple):
    """What an answer's headers say; null: nothing."""

    retry_after_s: float | None
    requests_per_s: float | None
    tokens_per_s: float | None


def hints_of(headers: Iterable[tuple[str, str]], wall_s: float) -> Hints:
    """Reads an answer's headers; what cannot be read counts as absent.

    A date is measured from the answer's own ``Date``, else from ``wall_s`` (since 1970).
    """
    found = {name.lower(): value.strip() for name, value in headers}
    return Hints(
        _retry_after(found, wall_s),
        _per_s(found, _REQUESTS),
        _per_s(found, _TOKENS),
    )


def _retry_after(found: dict[str, str], wall_s: float) -> float | None:
    exact = _number(found.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    text = found.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    until = _date(text)
    if until is None:
        return None
    start = _date(found.get("date", ""))
    return max(0.0, until - (wall_s if start is None else start))


def _per_s(found: dict[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        number = _number(found.get(name))
        if number is not None and number > 0:
            return number / MINUTE_S
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _date(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        # A date without a zone is UTC here, whatever this machine's zone is.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
