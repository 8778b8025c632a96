"""Answers that are odd: compressed, refused with a success, with a head that cannot be repeated."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.workers.gateway.upstreams import (
    COMPLETION,
    KEY,
    Agents,
    access,
    gateway_to,
    listening,
    only,
    provider,
    raw_provider,
)
from workers.contract.endpoint import Endpoint
from workers.gateway import CallResult, Gateway, LedgerLine


@pytest.mark.parametrize(
    ("head", "status", "result"),
    [
        ("200 OK\r\nContent-Encoding: x-gzip", 502, CallResult.PROVIDER_MALFORMED),
        ("200 OK\r\nContent-Encoding: gzip, gzip", 502, CallResult.PROVIDER_MALFORMED),
        ("200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip", 502, "provider_malformed"),
        ("200 OK\r\nTransfer-Encoding: gzip, chunked", 502, CallResult.PROVIDER_MALFORMED),
        ("429 Slow\r\nContent-Encoding: x-gzip", 429, CallResult.RATE_LIMITED),
    ],
)
def test_what_is_still_compressed_is_not_passed_on(
    tmp_path: Path, head: str, status: int, result: str
) -> None:
    packed = gzip.compress(gzip.compress(KEY.encode(), mtime=0), mtime=0)
    ends = "" if "chunked" in head else f"Content-Length: {len(packed)}\r\n"
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed) if "chunked" in head else packed

    async def run() -> None:
        answer = f"HTTP/1.1 {head}\r\n{ends}\r\n".encode() + body
        async with raw_provider(answer) as url, gateway_to(url, tmp_path) as agents:
            got, content, _ = await agents.ask()
            assert got == status
            assert b"compressed" in content
            line = only(agents)
            assert line.result == result
            assert line.cost_usd == (0.0 if status == 429 else None)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "is_free"),
    [
        ('{"error": {"code": 400}}', True),
        ('{"error": {"code": 400}, "usage": {"prompt_tokens": 7, "completion_tokens": 1}}', False),
        ('data: {"error": {"code": 400}}\n\n', True),
        ('data: {"choices": []}\n\ndata: {"error": {"code": 400}}\n\n', False),
    ],
)
def test_a_refusal_with_the_status_of_a_success_costs_nothing(
    tmp_path: Path, said: str, is_free: bool
) -> None:
    kind = "application/json" if said.startswith("{") else "text/event-stream"

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=said, content_type=kind)

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            assert (await agents.ask())[0] == 200
            line = only(agents)
            assert line.result is CallResult.CLIENT_ERROR
            assert (line.cost_usd == 0.0) == is_free
            assert line.counted is not None
            assert (line.counted.output_tokens == 0) == is_free

    asyncio.run(run())


@pytest.mark.parametrize("head", ["200 OK\r\nX-A: a\x01b", "200 O\x01K"])
def test_control_characters_in_a_providers_head(tmp_path: Path, head: str) -> None:
    body = json.dumps(COMPLETION).encode()
    whole = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    async def run() -> None:
        async with raw_provider(whole) as url, gateway_to(url, tmp_path) as agents:
            status, content, headers = await agents.ask()
            assert (status, content, headers.get("X-A")) == (200, body, None)
            assert only(agents).result is CallResult.OK

    asyncio.run(run())


def test_a_finish_is_cut_where_it_shows_nothing_of_a_key(tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"choices": [{"finish_reason": "x" * 40 + KEY + "y" * 40}]})

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            await agents.ask()
            finish = only(agents).finish
            assert finish is not None
            assert KEY[:8] not in finish
            assert len(finish) == 64

    asyncio.run(run())


async def in_chunks(request: web.Request) -> web.StreamResponse:
    """A completion of no declared length: its end is a piece of its own."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(json.dumps(COMPLETION).encode())
    return response


def test_an_agent_that_leaves_at_the_very_end_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        left: list[LedgerLine] = []

        def leave(line: LedgerLine) -> None:
            left.append(line)
            for connection in trial._http.connections:
                assert connection.transport is not None
                connection.transport.abort()

        async with provider(in_chunks) as url, aiohttp.ClientSession() as client:
            endpoint = Endpoint(provider="openai", api_key_env="K", base_url=url)
            async with Gateway({"m": endpoint}, {"K": KEY}, heard=leave) as gateway:
                trial = await gateway.open_trial((access(),), tmp_path / "usage.jsonl")
                sock, port = listening()
                await trial.serve(sock)
                agents = Agents(trial, f"http://127.0.0.1:{port}", client)
                with pytest.raises(aiohttp.ClientError):
                    await agents.ask()
                await trial.close()
        assert [line.result for line in left] == [CallResult.OK]

    asyncio.run(run())
    assert not [each for each in caplog.records if each.name.startswith("workers")]


def test_the_trials_token_does_not_go_to_the_provider(tmp_path: Path) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(repr(request.raw_headers))
        return web.json_response(COMPLETION)

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            token = agents.trial.tokens["solo-1"]
            await agents.ask(headers={"api-key": token, "X-Auth": f"key {token}", "X-Other": "1"})
            assert token not in seen[0]
            assert "X-Other" in seen[0]

    asyncio.run(run())
