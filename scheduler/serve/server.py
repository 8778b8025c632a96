"""The server of the pages: routes, threads for the store, and what each answer carries."""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from scheduler.report.sides import NotComparableError
from scheduler.serve import guard, render
from scheduler.serve.library import Library, MissingPageError
from scheduler.serve.selection import Selection, number_of
from scheduler.templates import style
from workers.contract.base import FormatError
from workers.storage.interface import InvalidKeyError, Store, StoreError

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

THREADS = 8
READ_S = 60.0
"""The longest that a page waits for the store."""
CLOSE_S = 2.0

SWEEP = r"/sweeps/{sweep:[A-Za-z0-9][A-Za-z0-9._-]*}"
ATTEMPT = SWEEP + r"/attempts/{attempt:[0-9a-f]{32}}"
FILE = ATTEMPT + r"/tries/{try:[0-9]+-[0-9]+}/files/{name:.+}"


@dataclass(frozen=True)
class ServeOptions:
    """Where the pages are served, and to whom."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    """Needed by every request; null: none is."""


class Pages:
    """The pages of a store on a port; an async context manager."""

    def __init__(self, store: Store, options: ServeOptions) -> None:
        """Listens nowhere yet."""
        self._library = Library(store)
        self._options = options
        self._local = guard.is_loopback(options.host)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="serve")
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        """Listens.

        Raises:
            OSError: the address or the port cannot be had.
        """
        application = web.Application(middlewares=[self._guarded])
        application.add_routes(
            [
                web.get("/", self._sweeps),
                web.get("/compare", self._compare),
                web.get(SWEEP, self._sweep),
                web.get(SWEEP + "/report", self._report),
                web.get(ATTEMPT, self._attempt),
                web.get(FILE, self._file),
                web.get("/enter", self._enter),
                web.post("/enter", self._entered),
                web.get("/style.css", _asset(style() + render.asset("pages.css"), "text/css")),
                web.get("/live.js", _asset(render.asset("live.js"), "text/javascript")),
                web.get("/icon.svg", _asset(render.asset("icon.svg"), "image/svg+xml")),
                web.get("/healthz", self._health),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=CLOSE_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._options.host, self._options.port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        host, port, *_ = self._runner.addresses[0]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._pool.shutdown(wait=False, cancel_futures=True)

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._local and not guard.is_own_name(request.host):
            return _page(render.message("This name is not served here."), status=421)
        open_to_all = request.path in ("/enter", "/style.css", "/icon.svg", "/healthz")
        cookie = request.cookies.get(guard.COOKIE)
        if not open_to_all and not guard.admits(self._options.token, request.headers, cookie):
            wants_page = "text/html" in request.headers.get("Accept", "")
            answer = _page(render.enter(wrong=False), status=401)
            if not wants_page:
                answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        try:
            return await handler(request)
        except (MissingPageError, InvalidKeyError) as error:
            return _page(render.message(str(error)), status=404)
        except NotComparableError as error:
            return _page(render.message(str(error)), status=400)
        except TimeoutError:
            return _page(render.message(f"The store did not answer in {READ_S:g} s."), status=504)
        except (StoreError, FormatError) as error:
            return _page(render.message(str(error)), status=502)
        except web.HTTPException as error:
            return _page(render.message(error.reason), status=error.status)

    async def _read(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(READ_S):
            return await loop.run_in_executor(self._pool, work)

    async def _sweeps(self, request: web.Request) -> web.StreamResponse:
        skip = number_of(request.query.get("skip", ""))
        return await self._shown(
            request, lambda: render.sweeps(self._library.rows(skip), skip, self._library.url)
        )

    async def _sweep(self, request: web.Request) -> web.StreamResponse:
        sweep, wanted = request.match_info["sweep"], Selection.read(request.query)
        return await self._shown(request, lambda: render.sweep(self._library.sweep(sweep), wanted))

    async def _attempt(self, request: web.Request) -> web.StreamResponse:
        sweep, attempt = request.match_info["sweep"], request.match_info["attempt"]
        try_, whole = request.query.get("try"), "whole" in request.query
        return await self._shown(
            request,
            lambda: render.attempt(self._library.attempt(sweep, attempt, try_), whole=whole),
        )

    async def _compare(self, request: web.Request) -> web.StreamResponse:
        a, b = request.query.get("a", ""), request.query.get("b", "")
        return await self._shown(request, functools.partial(render.compare, self._library, a, b))

    async def _report(self, request: web.Request) -> web.StreamResponse:
        sweep = request.match_info["sweep"]
        data = await self._read(lambda: self._library.report(sweep))
        return web.Response(
            body=data,
            content_type="text/html",
            charset="utf-8",
            headers=guard.headers(guard.REPORT_POLICY),
        )

    async def _file(self, request: web.Request) -> web.StreamResponse:
        part = request.match_info
        data = await self._read(
            lambda: self._library.file(part["sweep"], part["attempt"], part["try"], part["name"])
        )
        return web.Response(
            body=data,
            content_type="text/plain",
            charset="utf-8",
            headers=guard.headers(guard.RAW_POLICY),
        )

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        return _page(render.enter(wrong=False))

    async def _entered(self, request: web.Request) -> web.StreamResponse:
        """Takes the token from a form, so that a browser need not be taught a header."""
        try:
            given = str((await request.post()).get("token", "")).strip()
        except (ValueError, LookupError) as error:  # no form, or in no encoding that there is
            raise web.HTTPBadRequest(reason="This is no form.") from error
        token = self._options.token
        if token is not None and not guard.same(given, token):
            return _page(render.enter(wrong=True), status=401)
        answer = web.Response(status=303, headers={"Location": "/", **guard.headers("")})
        if token is not None:
            answer.set_cookie(guard.COOKIE, token, httponly=True, samesite="Strict", path="/")
        return answer

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n", headers=guard.headers(guard.RAW_POLICY))

    async def _shown(self, request: web.Request, work: Callable[[], str]) -> web.StreamResponse:
        """A page, or 304 where the asker has it already (RFC 9110, section 13.1.2)."""
        text = await self._read(work)
        tag = f'"{hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        answer = _page(text)
        answer.headers["ETag"] = tag
        return answer


def _page(text: str, status: int = 200) -> web.Response:
    return web.Response(
        body=text.encode("utf-8", "replace"),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers=guard.headers(guard.PAGE_POLICY),
    )


def _asset(text: str, content_type: str) -> Any:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(
            text=text,
            content_type=content_type,
            charset="utf-8",
            headers=guard.headers(guard.RAW_POLICY),
        )

    return handler
