"""Signed HTTP requests to a relay, with Buzz's retries and a deadline."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from workers.nostr import http_auth, strict_json
from workers.nostr.attestation import Attestation
from workers.nostr.errors import JsonError
from workers.nostr.keys import Keypair
from workers.relay.errors import RelayError, RelayRefusedError, RelayUnreachableError

ATTEMPTS = 3
BACKOFF_CAPS_S = (0.5, 1.5)
"""Full jitter under these, between the attempts."""
CONNECT_S = 15.0
READINESS_S = 5.0
MAX_HINT_S = 30
_RETRIED = (429, 502, 503, 504)
_HINT = re.compile(r"retry in (\d{1,6})s")


class Transport:
    """One key's HTTP connection to one relay."""

    def __init__(
        self,
        base_url: str,
        keypair: Keypair,
        auth_tag: Attestation | None,
        *,
        unix_socket: Path | None,
        timeout_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._base = _http_url(base_url)
        self._keypair = keypair
        self._auth_tag = auth_tag
        self._unix_socket = unix_socket
        self._timeout_s = timeout_s
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Makes the connection pool; connects only when asked for something."""
        connector: aiohttp.BaseConnector
        if self._unix_socket is None:
            connector = aiohttp.TCPConnector(limit=8)
        else:
            connector = aiohttp.UnixConnector(str(self._unix_socket), limit=8)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S),
        )

    async def close(self) -> None:
        """Ends the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def is_ready(self) -> bool:
        """Whether ``GET /_readiness`` answers 200 in time."""
        timeout = aiohttp.ClientTimeout(total=min(READINESS_S, self._timeout_s))
        try:
            async with self._opened().get(f"{self._base}/_readiness", timeout=timeout) as reply:
                return reply.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def post(self, path: str, body: bytes) -> Any:
        """The JSON answer to a signed request.

        The body's bytes are the same in every attempt and the authentication is fresh.

        Raises:
            RelayRefusedError: the relay answered another status than 200.
            RelayUnreachableError: no answer in any attempt, or not before the deadline.
        """
        last: RelayError | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                for attempt in range(ATTEMPTS):
                    if attempt:
                        await asyncio.sleep(_pause(last, attempt))
                    try:
                        return await self._attempt(path, body)
                    except RelayUnreachableError as error:
                        last = error
                    except RelayRefusedError as error:
                        if error.status not in _RETRIED:
                            raise
                        last = error
        except TimeoutError as error:
            raise RelayUnreachableError(
                f"POST {path}: no answer within {self._timeout_s:g} s"
                + (f" (last: {last})" if last else "")
            ) from error
        assert last is not None  # the loop ran, and did not return
        raise last

    async def _attempt(self, path: str, body: bytes) -> Any:
        url = self._base + path
        headers = {
            "Authorization": http_auth.authorize(self._keypair, url, "POST", body, self._clock()),
            "Content-Type": "application/json",
        }
        if self._auth_tag is not None:
            headers["x-auth-tag"] = self._auth_tag.to_text()
        try:
            async with self._opened().post(url, data=body, headers=headers) as reply:
                text = await reply.text()
                status = reply.status
        except (aiohttp.ClientError, OSError, UnicodeDecodeError) as error:
            raise RelayUnreachableError(f"POST {path}: {type(error).__name__}: {error}") from error
        if status != 200:
            raise RelayRefusedError(f"POST {path}", status, _reason(text))
        try:
            return strict_json.parse(text)
        except JsonError as error:
            raise RelayUnreachableError(f"POST {path}: the answer is not JSON") from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RelayError("the client is not open: use it as an async context manager")
        return self._session


def _http_url(url: str) -> str:
    for scheme, plain in (("ws://", "http://"), ("wss://", "https://")):
        if url.startswith(scheme):
            url = plain + url[len(scheme) :]
    return url.rstrip("/")


def _reason(text: str) -> str:
    """The relay's words in an error body, else the body's beginning."""
    try:
        data = strict_json.parse(text)
    except JsonError:
        data = None
    if isinstance(data, dict):
        for name in ("message", "error"):
            if isinstance(data.get(name), str):
                return str(data[name])
    return text[:200]


def _pause(last: RelayError | None, attempt: int) -> float:
    """Seconds to wait: the relay's own hint, else full jitter."""
    if isinstance(last, RelayRefusedError) and last.status == 429:
        hint = _HINT.search(last.reason)
        if hint is not None:
            return float(min(int(hint.group(1)), MAX_HINT_S))
    return random.uniform(0, BACKOFF_CAPS_S[attempt - 1])
