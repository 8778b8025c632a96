"""A server that speaks as much S3 as a trial needs, and can be away, or be of another time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

SKEWED = (
    "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time "
    "and the current time is too large.</Message></Error>"
)
MISSING = "<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
TAKEN = "<Error><Code>PreconditionFailed</Code><Message>there is one</Message></Error>"


class SmallS3:
    """Objects of one bucket in memory; see ``small_s3``."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.skewed = False
        """Refuse every request for its time, in S3's words."""
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Of a store in it."""
        return f"s3://bucket?endpoint_url=http://127.0.0.1:{self._port}&path_style=true"

    async def up(self) -> None:
        """Listens, on the same port as ever."""
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_route("*", "/bucket/{key:.+}", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Ends its connections and refuses new ones."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        key, body = request.match_info["key"], await request.read()
        if self.skewed:
            return _xml(403, SKEWED)
        if request.method == "PUT":
            if request.headers.get("If-None-Match") == "*" and key in self.objects:
                return _xml(412, TAKEN)
            self.objects[key] = body
            return web.Response(headers={"ETag": '"0"'})
        if key not in self.objects:
            return _xml(404, MISSING)
        return web.Response(body=self.objects[key], headers={"ETag": '"0"'})


def _xml(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="application/xml")


@asynccontextmanager
async def small_s3() -> AsyncIterator[SmallS3]:
    """A server that is up."""
    server = SmallS3()
    await server.up()
    try:
        yield server
    finally:
        await server.down()
