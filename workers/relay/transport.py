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
from workers.relay.dialling import connector
from workers.relay.errors import RelayError, RelayRefusedError, RelayUnreachableError

ATTEMPTS = 3
BACKOFF_CAPS_S = (0.5, 1.5)
"""Full jitter under these, between the attempts."""
CONNECT_S = 15.0
READINESS_S = 5.0
MOST_BYTES = 256 * 1024 * 1024
"""Of an answer; a page of the largest messages has less."""
MOST_BYTES_UNSIGNED = 1024 * 1024
PIECE = 64 * 1024
LEAST_WAIT_S = 0.05
RETRIED = (429, 502, 503, 504)
HINT = re.compile(r"retry in (\d{1,6})s")
"""How Buzz says when a quota is there again."""


class Transport:
    """One key's HTTP connection to one relay."""

    def __init__(
        self,
        base_url: str,
        keypair: Keypair,
        auth_tag: Attestation | None,
        *,
        unix_socket: Path | None,
        gateway: tuple[str, int] | None = None,
        timeout_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._base = http_url(base_url)
        self._keypair = keypair
        self._auth_tag = auth_tag
        self._unix_socket = unix_socket
        self._gateway = gateway
        self._timeout_s = timeout_s
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Makes the connection pool; connects only when asked for something."""
        self._session = aiohttp.ClientSession(
            connector=connector(self._unix_socket, self._gateway),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S),
        )

    async def close(self) -> None:
        """Ends the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        """Status and text of an unsigned request, made once.

        Raises:
            RelayUnreachableError: no answer within five seconds.
        """
        timeout = aiohttp.ClientTimeout(total=min(READINESS_S, self._timeout_s))
        url, headers = f"{self._base}{path}", {"Accept": accept}
        try:
            async with self._opened().get(
                url, headers=headers, timeout=timeout, allow_redirects=False
            ) as reply:
                return reply.status, (await _body(reply, MOST_BYTES_UNSIGNED)).decode()
        except _TooLargeError as error:
            raise RelayUnreachableError(f"GET {path}: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, UnicodeDecodeError) as error:
            words = str(error) or f"no answer within {timeout.total:g} s"
            raise RelayUnreachableError(f"GET {path}: {type(error).__name__}: {words}") from error

    async def post(self, path: str, body: bytes) -> Any:
        """The JSON answer to a signed request.

        The body's bytes are the same in every attempt and the authentication is fresh. A relay
        that names a time to wait is waited for as often as the deadline has room for it; that
        counts as no attempt.

        Raises:
            RelayRefusedError: the relay answered another status than 200, a redirection among
                them: what was signed is good for one address.
            RelayUnreachableError: no answer in any attempt, or not before the deadline.
            RelayError: the answer has no end.
        """
        last: RelayError | None = None
        end = time.monotonic() + self._timeout_s
        try:
            async with asyncio.timeout(self._timeout_s):
                attempt = 1
                while True:
                    try:
                        return await self._attempt(path, body)
                    except RelayUnreachableError as error:
                        last = error
                    except RelayRefusedError as error:
                        if error.status not in RETRIED:
                            raise
                        last = error
                    hint_s = asked_to_wait(last)
                    if hint_s is None and attempt == ATTEMPTS:
                        raise last
                    if hint_s is not None and time.monotonic() + hint_s >= end:
                        raise last
                    await asyncio.sleep(_jitter(attempt) if hint_s is None else hint_s)
                    attempt += hint_s is None
        except TimeoutError as error:
            raise RelayUnreachableError(
                f"POST {path}: no answer within {self._timeout_s:g} s"
                + (f" (last: {last})" if last else "")
            ) from error

    async def _attempt(self, path: str, body: bytes) -> Any:
        url = self._base + path
        headers = {
            "Authorization": http_auth.authorize(self._keypair, url, "POST", body, self._clock()),
            "Content-Type": "application/json",
        }
        if self._auth_tag is not None:
            headers["x-auth-tag"] = self._auth_tag.to_text()
        try:
            async with self._opened().post(
                url, data=body, headers=headers, allow_redirects=False
            ) as reply:
                answer = await _body(reply, MOST_BYTES)
                status = reply.status
        except _TooLargeError as error:
            raise RelayError(f"POST {path}: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RelayUnreachableError(f"POST {path}: {type(error).__name__}: {error}") from error
        if status != 200:
            raise RelayRefusedError(
                f"POST {path}", status, _reason(answer.decode("utf-8", "replace"))
            )
        try:
            return strict_json.parse(bytes(answer))
        except JsonError as error:
            raise RelayUnreachableError(f"POST {path}: the answer is not JSON") from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RelayError("the client is not open: use it as an async context manager")
        return self._session


def http_url(url: str) -> str:
    """A relay's HTTP address: ``ws`` becomes ``http``, trailing slashes go."""
    for scheme, plain in (("ws://", "http://"), ("wss://", "https://")):
        if url.startswith(scheme):
            url = plain + url[len(scheme) :]
    return url.rstrip("/")


class _TooLargeError(Exception):
    """An answer of more bytes than anybody asked for."""


async def _body(reply: aiohttp.ClientResponse, most: int) -> bytearray:
    """An answer's bytes: JSON is UTF-8, whatever its header says of it."""
    data = bytearray()
    async for piece in reply.content.iter_chunked(PIECE):
        data += piece
        if len(data) > most:
            raise _TooLargeError(f"the answer has more than {most} bytes")
    return data


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


def asked_to_wait(error: RelayError) -> float | None:
    """The seconds that a relay which limits a rate names; None: it does not."""
    if not isinstance(error, RelayRefusedError) or error.status != 429:
        return None
    hint = HINT.search(error.reason)
    # A window that is over in less than a second is named as 0 s.
    return None if hint is None else max(float(hint.group(1)), LEAST_WAIT_S)


def _jitter(attempt: int) -> float:
    return random.uniform(0, BACKOFF_CAPS_S[attempt - 1])
