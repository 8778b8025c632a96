"""Agents and providers that do what they should not, and agents that are killed in the middle."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from workers.allowance import Purse
from workers.contract.budget import Allowance
from workers.contract.endpoint import Endpoint
from workers.gateway import CallResult, Gateway, GatewayLimits

pytestmark = pytest.mark.long

EVENTS = (
    'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\n'
    "data: [DONE]\n\n"
)


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "text/event-stream"])
def test_a_stream_that_does_not_say_that_it_is_one(tmp_path: Path, kind: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=EVENTS, content_type=kind)

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            _, content, headers = await agents.ask({"stream": True})
            assert content == EVENTS.encode()
            assert headers["Content-Type"].startswith(kind)
            line = only(agents)
            assert (line.result, line.input_tokens, line.output_tokens) == (CallResult.OK, 9, 3)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(json.dumps({**COMPLETION, "echo": KEY}).encode())),
        ("gzip", b"no gzip at all"),
        ("gzip", gzip.compress(b"x" * 1000)[:-9]),
        ("nonsense", json.dumps(COMPLETION).encode()),
    ],
    ids=["whole", "none", "broken off", "unknown"],  # a packed text holds the time
)
def test_a_compressed_answer_is_searched_for_the_key(
    tmp_path: Path, encoding: str, packed: bytes
) -> None:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(packed)}\r\n\r\n"
    )

    async def run() -> None:
        async with (
            raw_provider(head.encode() + packed) as url,
            gateway_to(url, tmp_path) as agents,
        ):
            try:
                _, content, headers = await agents.ask()
                assert KEY.encode() not in content
                assert headers.get("Content-Encoding") != "gzip"
            except aiohttp.ClientPayloadError:
                assert only(agents).result is CallResult.PROVIDER_UNREACHABLE
            assert len(agents.trial.lines()) == 1

    asyncio.run(run())


@pytest.mark.parametrize(("size", "status"), [(40_000, 200), (90_000, 502)])
def test_long_headers_of_a_provider(tmp_path: Path, size: int, status: int) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(COMPLETION, headers={"X-Policy": "p" * size})

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            assert agents.client._connector is not None
            async with aiohttp.ClientSession(max_field_size=200_000, max_line_size=200_000) as own:
                agents.client = own
                assert (await agents.ask())[0] == status

    asyncio.run(run())


def test_long_headers_of_an_agent_end_its_request_only(tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(COMPLETION)

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            status, _, _ = await agents.ask(headers={"X-Long": "l" * 100_000})
            assert status == 400
            assert (await agents.ask())[0] == 200
            assert len(agents.trial.lines()) == 1

    asyncio.run(run())


async def raw(agents: Agents, *pieces: bytes, pause_s: float = 0.0) -> bytes:
    """Sends bytes as they are; what comes back until the other side is silent or gone."""
    port = int(agents.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause_s)
        if b"100-continue" in piece.lower():
            got += await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    try:
        while True:
            more = await asyncio.wait_for(reader.read(65536), 1.0)
            if not more:
                break
            got += more
            if got.endswith(b"}"):
                break
    finally:
        writer.close()
    return got


def head_of(agents: Agents, length: int | str, more: str = "", token: str = "") -> bytes:
    return (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {token or agents.trial.tokens['solo-1']}\r\n"
        f"Content-Length: {length}\r\n{more}\r\n"
    ).encode()


def test_a_client_that_waits_for_100_continue(tmp_path: Path) -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        return web.json_response(COMPLETION)

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            body = json.dumps(agents.body()).encode()
            got = await raw(agents, head_of(agents, len(body), "Expect: 100-continue\r\n"), body)
            assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
            assert "Expect" not in seen[0].headers
            # Without a token there is no invitation to send anything.
            stranger = head_of(agents, len(body), "Expect: 100-continue\r\n", token="wrong")
            got = await raw(agents, stranger)
            assert got.startswith(b"HTTP/1.1 401 ")

    asyncio.run(run())


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzz",
        b"POST \xff HTTP/9.9\r\n\r\n",
    ],
)
def test_what_is_no_request_harms_nobody(tmp_path: Path, sent: bytes) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(COMPLETION)

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            try:
                got = await raw(agents, sent)
                assert not got or got.split()[1].startswith(b"4")
            except (TimeoutError, ConnectionError):
                pass  # It waits for more, or has hung up: both are right.
            assert (await agents.ask())[0] == 200

    asyncio.run(run())


def test_a_body_in_slow_pieces(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({**COMPLETION, "size": len(await request.read())})

    async def run() -> None:
        async with provider(answer) as url, gateway_to(url, tmp_path) as agents:
            body = json.dumps(agents.body(filler="ü" * 50)).encode()
            pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
            got = await raw(agents, head_of(agents, len(body)), *pieces, pause_s=0.001)
            assert json.loads(got.split(b"\r\n\r\n", 1)[1])["size"] == len(body)

    asyncio.run(run())


@asynccontextmanager
async def two_trials(url: str, folder: Path) -> AsyncIterator[list[Agents]]:
    endpoints = {
        name: Endpoint(provider="openai", api_key_env="K", base_url=url) for name in ("m", "n")
    }
    async with Gateway(endpoints, {"K": KEY}) as gateway, aiohttp.ClientSession() as client:
        made = []
        for name in ("m", "n"):
            agents = (access(f"{name}-1", name), access(f"{name}-2", name))
            trial = await gateway.open_trial(agents, folder / f"{name}.jsonl")
            sock, port = listening()
            await trial.serve(sock)
            made.append(Agents(trial, f"http://127.0.0.1:{port}", client, name))
        yield made
        for each in made:
            await each.trial.close()


def test_a_token_opens_its_own_trial_and_model_and_dies_with_it(tmp_path: Path) -> None:
    asked = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.json_response(COMPLETION)

    async def run() -> None:
        async with provider(answer) as url, two_trials(url, tmp_path) as (one, other):
            token = one.trial.tokens["m-1"]
            assert len({*one.trial.tokens.values(), *other.trial.tokens.values()}) == 4
            assert (await one.ask(agent="m-1"))[0] == 200
            assert (await other.ask(agent="n-1", token=token))[0] == 401
            assert (await one.ask({"model": "n"}, agent="m-1"))[0] == 403
            assert (await other.ask(agent="n-1", token=KEY))[0] == 401
            await one.trial.close()
            with pytest.raises(aiohttp.ClientConnectionError):
                await one.ask(agent="m-1")
            assert (await other.ask(agent="n-1", token=token))[0] == 401
            assert (await other.ask(agent="n-2"))[0] == 200

    asyncio.run(run())
    assert asked == 2


def test_a_sweep_budget_refuses_before_the_provider_is_asked(tmp_path: Path) -> None:
    asked = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.json_response(COMPLETION)

    async def run() -> None:
        purse = Purse(patience_s=0.05)
        purse.lend(Allowance(calls=2), is_over=False)
        async with provider(answer) as url, gateway_to(url, tmp_path, purse=purse) as agents:
            assert [(await agents.ask())[0] for _ in range(3)] == [200, 200, 402]
            purse.lend(Allowance(calls=2), is_over=True)
            status, content, _ = await agents.ask()
            assert status == 402
            assert json.loads(content)["error"]["message"] == "the budget of the sweep is spent"
            lines = agents.trial.lines()
            assert [line.result for line in lines[2:]] == [CallResult.REFUSED_SWEEP_BUDGET] * 2
            assert [line.counted for line in lines[2:]] == [None, None]
            assert agents.trial.usage().calls == purse.spent.calls == 2
            assert agents.trial.usage().counted == purse.spent

    asyncio.run(run())
    assert asked == 2


def test_usage_is_asked_for_where_an_endpoint_opts_in(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(await request.read())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in EVENTS.encode().split(b"\n\n")[:-1]:
            await response.write(event[:5])
            await asyncio.sleep(0.002)
            await response.write(event[5:] + b"\n\n")
        return response

    async def run() -> None:
        async with (
            provider(answer) as url,
            gateway_to(url, tmp_path, stream_usage=True) as agents,
        ):
            body = b'{"model": "m",  "messages":[], "stream": true}'
            _, content, _ = await agents.ask(body)
            hidden = EVENTS.encode().split(b"\n\n")
            assert content == b"\n\n".join([*hidden[:2], *hidden[3:]])
            assert only(agents).input_tokens == 9
            asking = b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}'
            _, content, _ = await agents.ask(asking)
            assert content == EVENTS.encode()
            whole = b'{"model":"m","messages":[]}'
            await agents.ask(whole)
            assert seen[0] == b'{"stream_options":{"include_usage":true},' + body[1:]
            assert seen[1:] == [asking, whole]

    asyncio.run(run())


def test_too_many_bytes_of_a_stream_without_an_end_of_line(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(20):
            await response.write(b"data: x" * 10_000)
        return response

    async def run() -> None:
        limits = GatewayLimits(response_bytes=500_000)
        async with provider(answer) as url, gateway_to(url, tmp_path, limits=limits) as agents:
            with pytest.raises(aiohttp.ClientPayloadError):
                await agents.ask({"stream": True})
            assert only(agents).result is CallResult.PROVIDER_MALFORMED

    asyncio.run(run())


def test_a_request_that_was_cut_before_it_was_forwarded_is_no_call(tmp_path: Path) -> None:
    async def run() -> None:
        purse = Purse()
        purse.lend(Allowance(calls=0), is_over=False)
        async with gateway_to("http://127.0.0.1:9", tmp_path, purse=purse) as agents:
            waiting = asyncio.create_task(agents.ask())
            async with asyncio.timeout(5):
                while not purse.wants:  # noqa: ASYNC110 - the purse has no event of its own
                    await asyncio.sleep(0.005)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await agents.trial.close()
            line = only(agents)
            assert (line.result, line.forwarded, line.counted) == (CallResult.CUT, False, None)
            assert agents.trial.usage().calls == purse.spent.calls == 0

    asyncio.run(run())
