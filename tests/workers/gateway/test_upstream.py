"""Providers that fail, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.workers.gateway.upstreams import (
    COMPLETION,
    KEY,
    gateway_to,
    listening,
    only,
    provider,
    raw_provider,
)
from workers.gateway import CallResult, GatewayLimits

QUICK = GatewayLimits(connect_s=1, read_s=0.3, total_s=5, close_s=1)


def test_an_answer_that_came_compressed_is_read_all_the_same(tmp_path: Path) -> None:
    async def packed(_: web.Request) -> web.Response:
        data = gzip.compress(json.dumps(COMPLETION).encode())
        return web.Response(
            body=data, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
        )

    async def run() -> None:
        async with provider(packed) as url, gateway_to(url, tmp_path) as agents:
            _, content, headers = await agents.ask()
            assert json.loads(content) == COMPLETION
            assert "Content-Encoding" not in headers
            assert only(agents).input_tokens == 1000

    asyncio.run(run())


def test_an_unreachable_provider(tmp_path: Path) -> None:
    async def run() -> None:
        sock, port = listening()
        sock.close()
        async with gateway_to(f"http://127.0.0.1:{port}", tmp_path) as agents:
            status, content, _ = await agents.ask()
            assert status == 502
            assert json.loads(content)["error"]["code"] == "provider_unreachable"
            status, content, _ = await agents.ask(path="/v1/messages")
            assert json.loads(content)["type"] == "error"
            line = agents.trial.lines()[0]
            assert (line.status, line.result) == (None, CallResult.PROVIDER_UNREACHABLE)
            assert (line.cost_usd, line.input_tokens) == (None, None)
            assert agents.trial.usage().unknown_cost_calls == 2

    asyncio.run(run())


def test_a_silent_provider(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            raw_provider(b"", hang=True) as url,
            gateway_to(url, tmp_path, limits=QUICK) as agents,
        ):
            start = time.monotonic()
            status, _, _ = await agents.ask()
            assert status == 502
            assert time.monotonic() - start < 3
            assert only(agents).result is CallResult.PROVIDER_UNREACHABLE

    asyncio.run(run())


BROKEN = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: text/event-stream\r\n\r\n5\r\ndata:\r\n",
]


@pytest.mark.parametrize("answer", BROKEN, ids=["json", "stream"])
@pytest.mark.parametrize("hang", [False, True])
def test_an_answer_that_breaks_off_is_not_ended(tmp_path: Path, answer: bytes, hang: bool) -> None:
    async def run() -> None:
        async with (
            raw_provider(answer, hang=hang) as url,
            gateway_to(url, tmp_path, limits=QUICK) as agents,
        ):
            with pytest.raises(aiohttp.ClientPayloadError):
                await agents.ask()
            line = only(agents)
            assert (line.status, line.result) == (200, CallResult.PROVIDER_UNREACHABLE)
            assert line.cost_usd is None

    asyncio.run(run())


@pytest.mark.parametrize("answer", [b"HTP/1.1 200\r\n\r\n", b"\x00\x01\x02\r\n\r\n", b""])
def test_what_is_no_http(tmp_path: Path, answer: bytes) -> None:
    async def run() -> None:
        async with raw_provider(answer) as url, gateway_to(url, tmp_path) as agents:
            status, _, _ = await agents.ask()
            assert status == 502
            assert only(agents).result is CallResult.PROVIDER_UNREACHABLE

    asyncio.run(run())


@pytest.mark.parametrize("declared", [True, False])
def test_a_huge_answer(tmp_path: Path, declared: bool) -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if declared:
            response.content_length = 400_000
        await response.prepare(request)
        for _ in range(4):
            await response.write(b" " * 100_000)
        return response

    async def run() -> None:
        limits = GatewayLimits(response_bytes=300_000)
        async with provider(huge) as url, gateway_to(url, tmp_path, limits=limits) as agents:
            if declared:
                status, _, _ = await agents.ask()
                assert status == 502
            else:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await agents.ask()
            line = only(agents)
            assert (line.status, line.result) == (200, CallResult.PROVIDER_MALFORMED)

    asyncio.run(run())


def test_large_bodies_pass(tmp_path: Path) -> None:
    async def size(request: web.Request) -> web.Response:
        received = len(await request.read())
        return web.json_response({**COMPLETION, "size": received, "filler": "x" * 3_000_000})

    async def run() -> None:
        async with provider(size) as url, gateway_to(url, tmp_path) as agents:
            body = json.dumps(agents.body(filler="y" * 5_000_000)).encode()
            _, content, _ = await agents.ask(body)
            assert json.loads(content)["size"] == len(body)
            assert only(agents).result is CallResult.OK

    asyncio.run(run())


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body(tmp_path: Path, status: int) -> None:
    answer = f"HTTP/1.1 {status} {KEY}\r\n\r\n".encode()

    async def run() -> None:
        async with raw_provider(answer) as url, gateway_to(url, tmp_path) as agents:
            answered, content, _ = await agents.ask()
            assert (answered, content) == (status, b"")
            assert only(agents).result is CallResult.PROVIDER_MALFORMED

    asyncio.run(run())
