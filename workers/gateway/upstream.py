"""The door to the providers: one HTTP client for all trials of a node."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from workers.gateway.account import Account
from workers.gateway.errors import UpstreamError
from workers.gateway.headers import Headers
from workers.gateway.limits import GatewayLimits

_LINE_BYTES = 64 * 1024
"""The longest line and field of an answer's head; aiohttp's own bound is an eighth of it."""
_UNPACKED = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""Encodings of a body that aiohttp undoes; an answer in one that it cannot undo is an error."""
_LARGE_BYTES = 512 * 1024
"""Bodies above this are sent from a stream, as aiohttp asks."""


class Answer:
    """A provider's answer, its body still to come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.reason = response.reason
        self.headers: Headers = list(response.headers.items())

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return self._response.content_type == "text/event-stream"

    @property
    def is_json(self) -> bool:
        """Whether the body says that it is one JSON document."""
        return self._response.content_type == "application/json"

    @property
    def is_packed(self) -> bool:
        """Whether the body is still compressed: in a way that was not asked for, or twice."""
        said = [(name.lower(), value.lower()) for name, value in self.headers]
        content = ",".join(value.strip() for name, value in said if name == "content-encoding")
        coding = ",".join(value.strip() for name, value in said if name == "transfer-encoding")
        return content not in _UNPACKED or coding not in ("", "chunked")

    @property
    def length(self) -> int | None:
        """The body's declared length in bytes."""
        return self._response.content_length

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body's bytes as they arrive.

        Raises:
            UpstreamError: it broke off, or nothing came in time.
        """
        content = self._response.content
        while True:
            try:
                piece = await content.readany()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise UpstreamError(f"the answer broke off ({_word(error)})") from error
            if not piece:
                return
            yield piece


class Upstream:
    """The client; ``close`` ends its connections."""

    def __init__(self, limits: GatewayLimits) -> None:
        self._session = aiohttp.ClientSession(
            # No bound of its own: what waits here would look like a slow provider.
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(
                total=limits.total_s, sock_connect=limits.connect_s, sock_read=limits.read_s
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()
        # Transports close in the loop's next turns.
        await asyncio.sleep(0)

    @asynccontextmanager
    async def post(
        self, url: str, headers: Headers, body: bytes, account: Account
    ) -> AsyncIterator[Answer]:
        """Sends a request by the account's way and gives its answer, which ends with the block.

        Raises:
            UpstreamError: the provider was not reached, or did not answer in time.
        """
        try:
            response = await self._session.post(
                URL(url, encoded=True),
                headers=headers,
                data=body if len(body) <= _LARGE_BYTES else io.BytesIO(body),
                allow_redirects=False,
                proxy=account.proxy,
                ssl=True if account.tls is None else account.tls,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UpstreamError(f"the provider did not answer ({_word(error)})") from error
        try:
            yield Answer(response)
        finally:
            # A body that was not read to its end takes its connection with it.
            if response.content.is_eof():
                response.release()
            else:
                response.close()


def _word(error: Exception) -> str:
    """A fault in a word: texts of the client may quote a URL or a header."""
    return type(error).__name__
