"""The gateway between a hostile agent and a hostile provider.

A docstring that begins with an id is a row of ``docs/security.md``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from tests.workers.gateway.upstreams import (
    COMPLETION,
    KEY,
    Agents,
    gateway_to,
    provider,
    raw_provider,
)

pytestmark = pytest.mark.long

PATIENCE_S = 5.0


@dataclass
class Bait:
    """A server that the gateway has no reason to talk to."""

    port: int = 0
    visitors: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def bait() -> AsyncIterator[Bait]:
    """Notes whoever comes."""
    made = Bait()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.visitors.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


async def said(agents: Agents, request: bytes) -> bytes:
    """All that comes back for some bytes."""
    port = int(agents.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()


def shaped(agents: Agents, line: str, *headers: str) -> bytes:
    """A request with a token and a good body, but for its first line and more headers."""
    body = json.dumps(agents.body()).encode()
    head = (
        line,
        f"Authorization: Bearer {agents.trial.tokens['solo-1']}",
        "Connection: close",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return "\r\n".join((*head, "", "")).encode() + body


CHAT = "/v1/chat/completions"
SHAPES: dict[str, Callable[[str], tuple[str, ...]]] = {
    "absolute": lambda at: (f"POST http://{at}{CHAT} HTTP/1.1", f"Host: {at}"),
    "two slashes": lambda at: (f"POST //{at}{CHAT} HTTP/1.1", "Host: localhost"),
    "user part": lambda at: (f"POST @{at}{CHAT} HTTP/1.1", "Host: localhost"),
    "tunnel": lambda at: (f"CONNECT {at} HTTP/1.1", f"Host: {at}"),
    "another host": lambda at: (f"POST {CHAT} HTTP/1.1", f"Host: {at}"),
    "forwarded": lambda at: (
        f"POST {CHAT} HTTP/1.1",
        "Host: localhost",
        f"X-Forwarded-Host: {at}",
        f"Forwarded: host={at}",
        f"X-Original-URL: http://{at}/",
    ),
    "upward": lambda at: (f"POST /v1/../../{at}{CHAT} HTTP/1.1", "Host: localhost"),
    "escaped": lambda at: (f"POST /v1/%2e%2e/%2f{at}{CHAT} HTTP/1.1", "Host: localhost"),
    "query": lambda at: (f"POST {CHAT}?@{at}/&url=http://{at}/ HTTP/1.1", "Host: localhost"),
    "fragment": lambda at: (f"POST {CHAT}#@{at}/ HTTP/1.1", "Host: localhost"),
    "upgrade": lambda at: (
        f"POST {CHAT} HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
    ),
    "two requests": lambda at: (
        f"POST {CHAT} HTTP/1.1",
        "Host: localhost",
        "Transfer-Encoding: chunked",
    ),
}


def test_no_shape_of_a_request_leads_elsewhere(tmp_path: Path) -> None:
    """A12 | the gateway as a way to other addresses: paths, absolute forms, CONNECT, Host,
    forwarding headers, upgrades | the address is the endpoint's; of a request only the dialect
    and the query go on"""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.json_response(COMPLETION)

    async def scenario() -> list[bytes]:
        async with (
            bait() as elsewhere,
            provider(answer) as url,
            gateway_to(f"{url}/base", tmp_path) as agents,
        ):
            answers = {}
            for name, shape in SHAPES.items():
                first, *headers = shape(f"127.0.0.1:{elsewhere.port}")
                answers[name] = await said(agents, shaped(agents, first, *headers))
            assert answers["another host"].startswith(b"HTTP/1.1 200 ")
            assert answers["tunnel"].startswith(b"HTTP/1.1 4")
            return elsewhere.visitors

    assert asyncio.run(scenario()) == []
    assert set(paths) == {"/base/chat/completions"}


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """M1 | a provider's redirect to an address of the node or of its network
    | it is handed to the agent, without the key, and not followed"""

    async def scenario() -> None:
        async with bait() as elsewhere:
            place = f"http://127.0.0.1:{elsewhere.port}/?key={KEY}"

            async def answer(_: web.Request) -> web.Response:
                return web.Response(status=307, headers={"Location": place})

            async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
                status, _, headers = await agents.ask()
                assert status == 307
                assert KEY not in headers["Location"]
            assert elsewhere.visitors == []

    asyncio.run(scenario())


HEAD = f"Content-Type: application/json\r\nX-Echo: Bearer {KEY}\r\n{KEY}: 1\r\n"
ECHOES: dict[str, str] = {
    "body": f'HTTP/1.1 200 OK\r\n{HEAD}Content-Length: 80\r\n\r\n{{"a": "{KEY}"}}'.ljust(80),
    "error": f"HTTP/1.1 401 Bearer {KEY}\r\n{HEAD}Content-Length: 35\r\n\r\n{KEY}",
    "early hints": (
        f"HTTP/1.1 103 Early Hints\r\nLink: <{KEY}>\r\n\r\n"
        f"HTTP/1.1 200 OK\r\n{HEAD}Content-Length: 2\r\n\r\n{{}}"
    ),
    "chunks": (
        f"HTTP/1.1 200 OK\r\n{HEAD}Transfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n"
        f"5;{KEY}\r\n{KEY[:5]}\r\n{len(KEY) - 5:x}\r\n{KEY[5:]}\r\n0\r\nX-End: {KEY}\r\n\r\n"
    ),
    "cookie": f"HTTP/1.1 200 OK\r\nSet-Cookie: k={KEY}\r\n{HEAD}Content-Length: 2\r\n\r\n{{}}",
    "challenge": (
        f'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error="{KEY}"\r\n'
        f"{HEAD}Content-Length: 0\r\n\r\n"
    ),
    "no http": f"{KEY}\r\n{KEY}\r\n\r\n",
}


@pytest.mark.parametrize("where", ECHOES)
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_provider_that_repeats_the_key(tmp_path: Path, where: str, kind: str) -> None:
    """M2 | a provider that repeats the request's headers: in body, error page, headers and their
    names, reason, interim answers, chunks, trailers | every byte on its way to the agent is
    searched for the key"""

    async def scenario() -> bytes:
        async with (
            raw_provider(ECHOES[where].encode()) as url,
            gateway_to(url, tmp_path, provider=kind) as agents,
        ):
            return await said(agents, shaped(agents, f"POST {CHAT} HTTP/1.1", "Host: localhost"))

    answer = asyncio.run(scenario())
    assert answer.startswith(b"HTTP/1.1 ")
    assert KEY.encode() not in answer
    assert KEY not in (tmp_path / "usage.jsonl").read_text()


def test_answers_of_any_size_and_depth(tmp_path: Path) -> None:
    """M3 | an answer that is nested a hundred thousand deep, without end, or no text
    | sizes are bounded, depth and encoding are errors of that one request"""
    deep = b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    bodies = [deep, b"\xff\xfe\x00" * 1000, b'{"usage": {"prompt_tokens": 1e999}}', b'"\\ud800"']

    async def scenario() -> None:
        left = list(bodies)

        async def answer(_: web.Request) -> web.Response:
            if left:
                return web.Response(body=left.pop(0), content_type="application/json")
            return web.json_response(COMPLETION)

        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            for body in bodies:
                assert (await agents.ask())[:2] == (200, body)
            assert (await agents.ask())[0] == 200
            results = [line.result.value for line in agents.trial.lines()]
            assert results[:4] == ["provider_malformed"] * 4
            assert results[4] == "ok"

    asyncio.run(scenario())
