"""Retries of signed requests (§3.1), against a server that fails as it is told."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from workers.nostr.keys import Keypair
from workers.relay import transport
from workers.relay.errors import (
    MOST_WORDS,
    RelayError,
    RelayRefusedError,
    RelayUnreachableError,
)
from workers.relay.transport import Transport


class Moody:
    """Answers each request with the next of the given moods, then with 200."""

    def __init__(self, *moods: Any) -> None:
        self.moods = list(moods)
        self.bodies: list[bytes] = []
        self.auth_ids: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        encoded = request.headers["Authorization"].removeprefix("Nostr ")
        self.auth_ids.append(json.loads(base64.b64decode(encoded))["id"])
        mood = self.moods.pop(0) if self.moods else 200
        if mood == "cut":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if mood == "hang":
            await asyncio.sleep(30)
        if isinstance(mood, web.Response):
            return mood
        if isinstance(mood, str):
            return web.Response(text=mood)
        if isinstance(mood, tuple):
            return web.json_response(mood[1], status=mood[0])
        return web.json_response({"status": mood}, status=mood)


def talk(
    server: Moody, scenario: Callable[[Transport], Awaitable[None]], timeout_s: float = 20
) -> None:
    async def run() -> None:
        app = web.Application()
        app.router.add_post("/events", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener).start()
        client = Transport(
            f"http://127.0.0.1:{listener.getsockname()[1]}",
            Keypair.generate(),
            None,
            unix_socket=None,
            timeout_s=timeout_s,
        )
        await client.open()
        try:
            await scenario(client)
        finally:
            await client.close()
            await runner.cleanup()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "BACKOFF_CAPS_S", (0.01, 0.02))


@pytest.mark.parametrize(
    "moods",
    [
        (502, 503),
        (504,),
        ("cut", "cut"),
        ("not json", "{"),
        ((429, {"error": "rate-limited: quota exceeded; retry in 0s"}),),
    ],
)
def test_3_1_passing_failures_are_retried_with_the_same_bytes_and_a_fresh_proof(
    moods: tuple[Any, ...],
) -> None:
    server = Moody(*moods)

    async def scenario(client: Transport) -> None:
        assert await client.post("/events", b"{}") == {"status": 200}

    talk(server, scenario)
    assert server.bodies == [b"{}"] * (len(moods) + 1)
    assert len(set(server.auth_ids)) == len(moods) + 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 500])
def test_3_1_a_refusal_is_final(status: int) -> None:
    server = Moody((status, {"error": "code", "message": "words"}))

    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError) as caught:
            await client.post("/events", b"{}")
        assert (caught.value.status, caught.value.reason) == (status, "words")

    talk(server, scenario)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(("body", "reason"), [({"error": "why"}, "why"), ({}, "{}"), ([1], "[1]")])
def test_3_1_the_relays_own_words(body: Any, reason: str) -> None:
    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError) as caught:
            await client.post("/events", b"{}")
        assert caught.value.reason == reason

    talk(Moody((400, body)), scenario)


def test_3_1_three_attempts_and_no_more() -> None:
    server = Moody(*["cut"] * 9)

    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayUnreachableError):
            await client.post("/events", b"{}")

    talk(server, scenario)
    assert len(server.bodies) == 3


def test_3_1_a_busy_relay_stays_a_refusal() -> None:
    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError) as caught:
            await client.post("/events", b"{}")
        assert caught.value.status == 503

    talk(Moody(503, 503, 503), scenario)


def test_3_1_every_call_has_a_deadline() -> None:
    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayUnreachableError, match=r"0\.2 s"):
            await client.post("/events", b"{}")

    talk(Moody("hang", "hang", "hang"), scenario, timeout_s=0.2)


def test_3_1_a_hint_longer_than_the_deadline_is_not_waited_for() -> None:
    server = Moody((429, {"error": "rate-limited: retry in 29s"}))

    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError, match="retry in 29s"):
            await client.post("/events", b"{}")

    talk(server, scenario)
    assert len(server.bodies) == 1


def test_1_7_a_relay_that_names_a_time_is_waited_for_more_than_three_times() -> None:
    limited = (429, {"error": "rate-limited: quota exceeded; retry in 0s"})
    server = Moody(*[limited] * 5, "cut", limited, "cut")

    async def scenario(client: Transport) -> None:
        assert await client.post("/events", b"{}") == {"status": 200}

    talk(server, scenario)
    assert len(server.bodies) == 9


@pytest.mark.parametrize("charset", ["base64", "no-such", "utf-16"])
def test_json_is_utf_8_whatever_the_header_says(charset: str) -> None:
    headers = {"Content-Type": f"application/json; charset={charset}"}

    async def scenario(client: Transport) -> None:
        assert await client.post("/events", b"{}") == {"ö": 1}

    talk(Moody(web.Response(body='{"ö":1}'.encode(), headers=headers)), scenario)


def test_a_page_in_another_encoding_is_still_a_refusal() -> None:
    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError) as caught:
            await client.post("/events", b"{}")
        assert (caught.value.status, caught.value.reason) == (500, "St\ufffdrung")

    talk(Moody(web.Response(status=500, body="Störung".encode("latin-1"))), scenario)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_what_was_signed_for_one_address_is_sent_to_no_other(status: int) -> None:
    server = Moody(web.Response(status=status, headers={"Location": "/events"}))

    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError) as caught:
            await client.post("/events", b"{}")
        assert caught.value.status == status

    talk(server, scenario)
    assert len(server.bodies) == 1


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 1000)
    monkeypatch.setattr(transport, "MOST_BYTES_UNSIGNED", 1000)
    server = Moody("[" + " " * 1000 + "]", "[" + " " * 900 + "]")

    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayError, match="the answer has more than 1000 bytes"):
            await client.post("/events", b"{}")
        assert len(server.bodies) == 1
        assert await client.post("/events", b"{}") == []

    talk(server, scenario)


def test_a_reason_is_kept_as_far_as_a_record_can_hold_it() -> None:
    async def scenario(client: Transport) -> None:
        with pytest.raises(RelayRefusedError) as caught:
            await client.post("/events", b"{}")
        assert caught.value.reason == "?[31m??" + "e" * (MOST_WORDS - 7)
        assert str(caught.value).encode()

    talk(Moody((400, {"error": "\x1b[31m\n\ud800" + "e" * 100_000})), scenario)
