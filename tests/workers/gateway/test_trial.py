"""A trial at the gateway: tokens, sockets, its end."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.workers.gateway.upstreams import (
    KEY,
    completion,
    gateway_to,
    listening,
    only,
    provider,
    raw_provider,
)
from workers.gateway import CallResult, GatewayLimits


def test_tokens_are_of_one_trial_only(tmp_path: Path) -> None:
    async def run() -> None:
        async with provider(completion) as url, gateway_to(url, tmp_path) as one:
            (tmp_path / "two").mkdir()
            async with gateway_to(url, tmp_path / "two") as two:
                token = two.trial.tokens["solo-1"]
                assert token != one.trial.tokens["solo-1"]
                assert (await one.ask(token=token))[0] == 401
                assert (await two.ask(url=one.url))[0] == 401
                assert (await two.ask())[0] == 200
            assert (await one.ask())[0] == 200
            assert [line.result for line in two.trial.lines()] == [CallResult.OK]
            assert token not in repr(two.trial.tokens) + repr(vars(two.trial))

    asyncio.run(run())


def test_an_agent_that_goes_away_ends_its_request(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            gone.set()
            raise
        return web.Response()

    async def run() -> None:
        application = web.Server(hang, handler_cancellation=True)  # type: ignore[arg-type]
        sock, port = listening()
        server = await asyncio.get_running_loop().create_server(application, sock=sock)
        async with gateway_to(f"http://127.0.0.1:{port}", tmp_path) as agents:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(agents.ask(), 0.2)
            await asyncio.wait_for(gone.wait(), 5)
            await agents.trial.close()
            line = only(agents)
            assert (line.result, line.status, line.cost_usd) == (CallResult.CUT, None, None)
        server.close()
        await application.shutdown(1)

    asyncio.run(run())


def test_connections_beyond_the_bound_end_unread_and_their_places_come_back(tmp_path: Path) -> None:
    bound = GatewayLimits().connections

    async def run() -> None:
        async with provider(completion) as url, gateway_to(url, tmp_path) as agents:
            port = int(agents.url.rsplit(":", 1)[1])
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(bound)]
            await asyncio.sleep(0)
            reader, extra = await asyncio.open_connection("127.0.0.1", port)
            with suppress(ConnectionError):  # how an abort is seen depends on its moment
                assert await asyncio.wait_for(reader.read(), 5) == b""
            extra.close()
            for _, writer in held:
                writer.close()
                await writer.wait_closed()
            assert (await asyncio.wait_for(agents.ask(), 5))[0] == 200

    asyncio.run(run())


def test_close_cuts_what_runs_and_keeps_what_is_known(tmp_path: Path) -> None:
    start = (
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":12,"output_tokens":1}}}'
        b"\n\n"
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

    async def run() -> None:
        async with (
            raw_provider(head + start, hang=True) as url,
            gateway_to(url, tmp_path) as agents,
        ):
            idle = await agents.client.get(agents.url + "/")
            await idle.read()
            headers = {"x-api-key": agents.trial.tokens["solo-1"]}
            async with agents.client.post(
                agents.url + "/v1/messages", json=agents.body(stream=True), headers=headers
            ) as answer:
                assert await asyncio.wait_for(answer.content.readuntil(b"\n\n"), 5) == start
                before = time.monotonic()
                await agents.trial.close()
                assert time.monotonic() - before < 1.5
                with pytest.raises(aiohttp.ClientError):
                    await answer.read()
            with pytest.raises(aiohttp.ClientError):
                await agents.ask()
            line = agents.trial.lines()[1]
            assert (line.result, line.status) == (CallResult.CUT, 200)
            assert (line.input_tokens, line.output_tokens, line.cost_usd) == (12, None, None)
            await agents.trial.close()
        written = (tmp_path / "usage.jsonl").read_text().splitlines()
        assert [json.loads(one)["result"] for one in written].count("cut") == 1

    asyncio.run(run())


def test_no_key_is_in_any_output(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def run() -> None:
        answer = b"HTTP/1.1 200 OK\r\nX: \x00" + KEY.encode() + b"\r\n\r\n"
        async with raw_provider(answer) as url, gateway_to(url, tmp_path) as agents:
            await agents.ask()
            port = int(agents.url.rsplit(":", 1)[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            token = agents.trial.tokens["solo-1"].encode()
            writer.write(b"POST / HTTP/1.1\r\nAuthorization : Bearer " + token + b"\r\n\r\n")
            refused = await reader.read()
            writer.close()
            assert b"400" in refused.split(b"\r\n")[0]
            assert token.decode() not in caplog.text
            seen = b"".join(agents.seen)
        assert KEY.encode() not in seen
        assert KEY not in caplog.text
        assert KEY not in (tmp_path / "usage.jsonl").read_text()

    asyncio.run(run())


def test_a_trial_has_as_many_sockets_as_it_is_given(tmp_path: Path) -> None:
    async def run() -> None:
        async with provider(completion) as url, gateway_to(url, tmp_path) as agents:
            sock, port = listening()
            await agents.trial.serve(sock)
            assert (await agents.ask(url=f"http://127.0.0.1:{port}"))[0] == 200
            assert (await agents.ask())[0] == 200

    asyncio.run(run())
