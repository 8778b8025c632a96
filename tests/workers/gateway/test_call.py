"""One request over real sockets: what passes, what is refused, what is noted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.workers.gateway.upstreams import (
    COMPLETION,
    KEY,
    access,
    completion,
    gateway_to,
    only,
    provider,
)
from workers.gateway import CallResult, GatewayLimits, LedgerLine


def test_a_request_passes_byte_for_byte(tmp_path: Path) -> None:
    seen: list[tuple[bytes, web.Request]] = []
    body = b'{ "model" : "m",\n "messages":[{"role":"user","content":"\\u00fc \xc3\xbc"}] }  '

    async def note(request: web.Request) -> web.Response:
        seen.append((await request.read(), request))
        return web.Response(
            body=b'{"choices": [],  "odd" : "\\u00fc" }',
            content_type="application/json",
            headers={"X-Request-Id": "abc", "Connection": "X-Gone", "X-Gone": "1"},
        )

    async def run() -> None:
        async with provider(note) as url, gateway_to(url + "/v1", tmp_path) as agents:
            status, content, headers = await agents.ask(
                body,
                path="/v1/chat/completions?beta=a%26b",
                headers={"X-Stainless-Retry-Count": "2", "Cookie": "c", "X-Other": "o"},
            )
            assert (status, content) == (200, b'{"choices": [],  "odd" : "\\u00fc" }')
            assert headers["X-Request-Id"] == "abc"
            assert "X-Gone" not in headers
            assert only(agents).retry == 2

    asyncio.run(run())
    ((received, request),) = seen
    assert received == body
    assert request.raw_path == "/v1/chat/completions?beta=a%26b"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["X-Other"] == "o"
    assert request.headers["Accept-Encoding"] == "identity"
    assert not {"Cookie", "x-api-key"} & set(request.headers)
    assert "127.0.0.1" in request.headers["Host"]


def test_anthropic_gets_its_own_header(tmp_path: Path) -> None:
    seen: list[web.Request] = []
    answer = {"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 5}}
    answer["usage"] = {"input_tokens": 5, "cache_read_input_tokens": 10, "output_tokens": 7}

    async def note(request: web.Request) -> web.Response:
        seen.append(request)
        return web.json_response(answer)

    async def run() -> None:
        async with (
            provider(note) as url,
            gateway_to(url, tmp_path, provider="anthropic") as agents,
        ):
            token = agents.trial.tokens["solo-1"]
            await agents.ask(
                path="/v1/messages",
                headers={
                    "Authorization": "",
                    "x-api-key": token,
                    "anthropic-version": "2024-1",
                },
            )
            line = only(agents)
            assert (line.dialect, line.input_tokens, line.cached_input_tokens) == (
                "messages",
                15,
                10,
            )
            assert line.finish == "end_turn"

    asyncio.run(run())
    (request,) = seen
    assert request.path == "/v1/messages"
    assert request.headers.getall("x-api-key") == [KEY]
    assert request.headers["anthropic-version"] == "2024-1"
    assert "Authorization" not in request.headers


def test_usage_and_cost_stand_in_the_ledger(tmp_path: Path) -> None:
    async def run() -> None:
        async with provider(completion) as url, gateway_to(url, tmp_path) as agents:
            before = agents.trial.last_activity()
            await agents.ask()
            line = only(agents)
            assert line == line.model_copy(
                update={
                    "request": 1,
                    "agent": "solo-1",
                    "endpoint": "m",
                    "dialect": "chat",
                    "model": "m",
                    "status": 200,
                    "result": CallResult.OK,
                    "input_tokens": 1000,
                    "cached_input_tokens": 400,
                    "output_tokens": 100,
                    "streamed": False,
                    "retry": None,
                    "finish": "stop",
                }
            )
            assert line.cost_usd == pytest.approx((600 * 3 + 400 * 0.3 + 100 * 15) / 1e6)
            assert 0 < line.seconds < 5
            assert agents.trial.last_activity() > before
            usage = agents.trial.usage()
            assert (usage.calls, usage.failed_calls, usage.unknown_cost_calls) == (1, 0, 0)
            assert usage.cost_usd == line.cost_usd
        (written,) = (tmp_path / "usage.jsonl").read_text().splitlines()
        assert LedgerLine.from_json(written, "usage.jsonl") == line

    asyncio.run(run())


def test_a_stream_is_not_held_back(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
        await release.wait()
        await response.write(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n')
        await response.write(
            b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\n'
        )
        await response.write(b"data: [DONE]\n\n")
        return response

    async def run() -> None:
        async with provider(stream) as url, gateway_to(url, tmp_path) as agents:
            headers = {"Authorization": f"Bearer {agents.trial.tokens['solo-1']}"}
            async with agents.client.post(
                agents.url + "/chat/completions", json=agents.body(stream=True), headers=headers
            ) as answer:
                first = await asyncio.wait_for(answer.content.readuntil(b"\n\n"), 5)
                assert b'"a"' in first
                release.set()
                assert (await answer.content.read()).endswith(b"data: [DONE]\n\n")
            line = only(agents)
            assert (line.result, line.streamed, line.finish) == (CallResult.OK, True, "stop")
            assert (line.input_tokens, line.output_tokens) == (9, 3)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (401, CallResult.PROVIDER_AUTH),
        (429, CallResult.RATE_LIMITED),
        (400, CallResult.CLIENT_ERROR),
        (500, CallResult.PROVIDER_5XX),
        (529, CallResult.PROVIDER_5XX),
        (302, CallResult.PROVIDER_MALFORMED),
    ],
)
def test_a_providers_refusal_passes(tmp_path: Path, status: int, result: CallResult) -> None:
    async def refuse(_: web.Request) -> web.Response:
        text = json.dumps({"error": {"message": f"bad key {KEY}"}})
        return web.Response(
            status=status, text=text, headers={"Retry-After": "7", "X-Echo": f"<{KEY}>"}
        )

    async def run() -> None:
        async with provider(refuse) as url, gateway_to(url, tmp_path) as agents:
            answered, content, headers = await agents.ask()
            assert answered == status
            assert json.loads(content)["error"]["message"] == "bad key " + "*" * len(KEY)
            assert headers["Retry-After"] == "7"
            assert KEY not in str(headers)
            line = only(agents)
            assert (line.status, line.result) == (status, result)
            is_known = result is not CallResult.PROVIDER_5XX and status != 302
            assert line.cost_usd == (0.0 if is_known else None)

    asyncio.run(run())


def test_a_key_that_a_provider_repeats_is_blanked_across_pieces(tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in (b"data: {}\n\ndata: ", KEY[:9].encode(), KEY[9:].encode(), b"\n\n"):
            await response.write(piece)
            await asyncio.sleep(0.02)
        return response

    async def run() -> None:
        async with provider(echo) as url, gateway_to(url, tmp_path) as agents:
            _, content, _ = await agents.ask({"stream": True})
            assert content == b"data: {}\n\ndata: " + b"*" * len(KEY) + b"\n\n"
            assert only(agents).result is CallResult.PROVIDER_MALFORMED

    asyncio.run(run())


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", '{"choices": 1}', '{"choices": [', "[" * 10**5]
)
def test_a_success_that_is_none(tmp_path: Path, text: str) -> None:
    async def malformed(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="application/json")

    async def run() -> None:
        async with provider(malformed) as url, gateway_to(url, tmp_path) as agents:
            status, content, _ = await agents.ask()
            assert (status, content) == (200, text.encode())
            line = only(agents)
            assert (line.result, line.cost_usd) == (CallResult.PROVIDER_MALFORMED, None)

    asyncio.run(run())


def test_what_may_not_be_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    async def note(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response(COMPLETION)

    async def run() -> None:
        limits = GatewayLimits(request_bytes=1000)
        async with provider(note) as url, gateway_to(url, tmp_path, limits=limits) as agents:
            cases: list[tuple[int, dict[str, Any]]] = [
                (401, {"token": "wrong"}),
                (401, {"headers": {"Authorization": "Basic abc"}}),
                (404, {"path": "/v1/models"}),
                (404, {"path": "/v1/chat/completions/x"}),
                (404, {"path": "/v2/chat/completions"}),
                (403, {"body": {"model": "another"}}),
                (403, {"body": {"model": None}}),
                (403, {"body": {"models": ["another"]}}),
                (400, {"body": b"[]"}),
                (400, {"body": b"{"}),
                (400, {"body": b'{"model": "m", "model": "m"}'}),
                (400, {"body": b"\xff"}),
                (413, {"body": {"filler": "x" * 1001}}),
                (415, {"headers": {"Content-Encoding": "gzip"}}),
            ]
            for number, (status, case) in enumerate(cases, start=1):
                answered, content, _ = await agents.ask(**case)
                assert answered == status, case
                assert json.loads(content)["error"]["message"]
                line = agents.trial.lines()[-1]
                assert (line.request, line.status, line.cost_usd) == (number, status, 0.0)
                is_token = status == 401
                assert line.result is (
                    CallResult.REFUSED_TOKEN if is_token else CallResult.REFUSED_ROUTE
                )
                assert (line.agent is None) == is_token
                assert line.model is None
            async with agents.client.get(agents.url + "/v1/chat/completions") as answer:
                assert answer.status == 401
            assert agents.trial.usage().calls == 0

    asyncio.run(run())
    assert asked == []


def test_refusals_do_not_fill_the_ledger(tmp_path: Path) -> None:
    async def run() -> None:
        limits = GatewayLimits(refusals=5)
        async with gateway_to("http://127.0.0.1:9", tmp_path, limits=limits) as agents:
            for _ in range(9):
                assert (await agents.ask(token="wrong"))[0] == 401
            assert len(agents.trial.lines()) == 5

    asyncio.run(run())


def test_a_renamed_model_must_be_asked_for_by_that_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with provider(completion) as url, gateway_to(url, tmp_path, model="real") as agents:
            assert (await agents.ask())[0] == 200
            status, content, _ = await agents.ask({"model": "m"})
            assert status == 403
            assert "'real'" in json.loads(content)["error"]["message"]

    asyncio.run(run())


def test_budgets_stop_before_the_provider_is_asked(tmp_path: Path) -> None:
    asked = 0

    async def count(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.json_response(COMPLETION)

    agents_ = (
        access("calls-1", max_calls=2),
        access("input-1", max_input_tokens=1500),
        access("output-1", max_output_tokens=150),
        access("cost-1", max_cost_usd=0.005),
        access("free-1"),
    )

    async def run() -> None:
        async with (
            provider(count) as url,
            gateway_to(url, tmp_path, agents=agents_, trial_max_cost_usd=0.0395) as agents,
        ):
            for agent in ("calls-1", "input-1", "output-1", "cost-1"):
                statuses = [(await agents.ask(agent=agent))[0] for _ in range(3)]
                assert statuses == [200, 200, 402], agent
                refused = agents.trial.lines()[-1]
                assert (refused.result, refused.cost_usd) == (CallResult.REFUSED_BUDGET, 0.0)
            # Eight calls cost 0.02736 dollars; the trial's limit comes with the twelfth.
            statuses = [(await agents.ask(agent="free-1"))[0] for _ in range(5)]
            assert statuses == [200, 200, 200, 200, 402]
            _, content, _ = await agents.ask(agent="free-1")
            assert json.loads(content)["error"]["type"] == "budget_exhausted"
            assert "the trial" in json.loads(content)["error"]["message"]

    asyncio.run(run())
    assert asked == 12


def test_a_providers_fault_is_not_charged(tmp_path: Path) -> None:
    statuses = iter([500, 429, 200, 200])

    async def fail(_: web.Request) -> web.Response:
        return web.json_response(COMPLETION, status=next(statuses))

    async def run() -> None:
        async with (
            provider(fail) as url,
            gateway_to(url, tmp_path, agents=(access(max_calls=1, max_cost_usd=0.1),)) as agents,
        ):
            assert [(await agents.ask())[0] for _ in range(4)] == [500, 429, 200, 402]

    asyncio.run(run())
