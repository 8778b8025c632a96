"""A deployment that flaps, restarts behind a proxy, closes what is live, or talks nonsense."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.workers.relay.deployment import Party
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import ExternalRelay, feed
from workers.relay.errors import MOST_WORDS

WAIT_S = 20.0
Visit = Callable[[web.WebSocketResponse, int], Awaitable[None]]
END = ["EOSE", feed.SUBSCRIPTION]


class Pauses(tuple[float, ...]):
    """Short ones, that remember which of them were taken."""

    taken: list[int]

    def __getitem__(self, place: Any) -> Any:
        self.taken.append(place)
        return super().__getitem__(place)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    made = Pauses((0.001,) * 5)
    made.taken = []
    monkeypatch.setattr(feed, "PAUSES_S", made)
    return made


@asynccontextmanager
async def watched(
    visit: Visit, refusals: dict[int, int] | None = None, lost_s: float = 30.0
) -> AsyncIterator[tuple[ExternalRelay, list[int]]]:
    """A view of a relay, live once, and the numbers of the connections that were made to it.

    Args:
        visit: what the relay does with a connection whose key is proved and which has asked.
        refusals: number of a connection to the status that it is refused with.
        lost_s: of the view.
    """
    numbers: list[int] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        numbers.append(len(numbers) + 1)
        number = numbers[-1]
        if status := (refusals or {}).get(number):
            return web.Response(status=status)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json(["AUTH", "a" * 64])
        proof = await socket.receive_json()
        await socket.send_json(["OK", proof[1]["id"], True, ""])
        assert (await socket.receive_json())[0] == "REQ"
        await visit(socket, number)
        return socket

    application = web.Application()
    application.router.add_get("/", serve)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    owner, keys = Keypair.generate(), Keypair.generate()
    gateway = ("127.0.0.1", runner.addresses[0][1])
    view = ExternalRelay("ws://relay.test:3600", gateway=gateway, lost_s=lost_s)
    try:
        async with asyncio.timeout(60):
            await view.watch(Party(keys, attest(owner, keys.pubkey)), "c")
            yield view, numbers
    finally:
        await view.close()
        await runner.cleanup()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - what is asked of has no events of its own
            await asyncio.sleep(0.002)


def message(content: str, kind: int = 9) -> dict[str, Any]:
    return Event.sign(Keypair.generate(), kind, (("h", "c"),), content, int(time.time())).to_dict()


def test_a_connection_that_never_lasts_is_made_at_longer_and_longer_intervals(
    pauses: Pauses,
) -> None:
    async def drop(socket: web.WebSocketResponse, number: int) -> None:
        await socket.send_json(END)
        await socket.close(code=1012, message=b"relay restarting")

    async def run() -> None:
        async with watched(drop) as (_, numbers):
            await until(lambda: len(numbers) >= 4)

    asyncio.run(run())
    assert pauses.taken[:3] == [0, 1, 2]


def test_a_relay_that_drops_every_connection_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PAUSES_S", (0.02,))

    async def drop(socket: web.WebSocketResponse, number: int) -> None:
        await socket.send_json(END)
        await socket.close(code=1012, message=b"relay restarting")

    async def run() -> None:
        # Many times as long as a pause, so no single one is as long.
        async with watched(drop, lost_s=0.2) as (view, _):
            await until(lambda: not view.is_serving)
            assert "relay restarting" in view.trouble

    asyncio.run(run())


def test_one_that_lasted_is_made_again_at_once(
    pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "STEADY_S", 0.0)

    async def drop(socket: web.WebSocketResponse, number: int) -> None:
        await socket.send_json(END)
        await socket.close(code=1012, message=b"relay restarting")

    async def run() -> None:
        async with watched(drop) as (_, numbers):
            await until(lambda: len(numbers) >= 4)

    asyncio.run(run())
    assert set(pauses.taken) == {0}


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("status", [401, 403, 404, 503])
def test_a_restart_behind_a_proxy_that_has_no_place_to_go_meanwhile(status: int) -> None:
    async def restart(socket: web.WebSocketResponse, number: int) -> None:
        await socket.send_json(END)
        if number == 1:
            await socket.close(code=1012, message=b"relay restarting")
        await socket.receive()

    async def run() -> None:
        async with watched(restart, {2: status, 3: status}) as (view, numbers):
            await until(lambda: len(numbers) == 4 and view.trouble == "")
            assert view.is_serving
            assert view.outages == 1

    asyncio.run(run())


@pytest.mark.usefixtures("pauses")
def test_a_live_subscription_that_is_closed_for_its_key_connects_anew() -> None:
    async def close(socket: web.WebSocketResponse, number: int) -> None:
        await socket.send_json(END)
        if number == 1:
            words = "auth-required: not authenticated"
            await socket.send_json(["CLOSED", feed.SUBSCRIPTION, words])
        await socket.receive()

    async def run() -> None:
        async with watched(close) as (view, numbers):
            await until(lambda: len(numbers) == 2 and view.trouble == "")
            assert view.is_serving

    asyncio.run(run())


NONSENSE = (
    "",
    "null",
    "[]",
    "[[]]",
    "{}",
    '["EVENT"]',
    '["EVENT","trial",null]',
    '["EVENT","trial",{"id":1}]',
    "[" * 100_000,
    "[" + "1" * 6_000 + "]",
    '["CLOSED","trial"]',
    '["EOSE",1]',
    '["NOTICE",1]',
    '["AUTH",1]',
    '["EOSE","other"]',
)


def test_nonsense_forgeries_and_repetitions_are_no_part_of_the_channel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed, "AGAIN_S", WAIT_S)
    good, unasked = message("good"), message("unasked", kind=31_337)

    async def talk(socket: web.WebSocketResponse, number: int) -> None:
        for each in NONSENSE:
            await socket.send_str(each)
        for event in (good, {**message("forged"), "sig": "0" * 128}, unasked, good):
            await socket.send_json(["EVENT", "trial", event])
        await socket.send_json(END)
        half = {**message("half"), "content": "\ud800"}
        for event in (good, unasked, half, {**good, "content": "other"}, {**good, "tags": [[]]}):
            await socket.send_json(["EVENT", "trial", event])
        await socket.send_json(["CLOSED", "trial", "error: \ud800" + "x" * 100_000])
        await socket.receive()

    async def run() -> None:
        async with watched(talk) as (view, _):
            await until(lambda: view.trouble != "")
            assert [event.to_dict() for event in view.timeline()] == [good]
            assert view.is_serving
            assert view.trouble.startswith("REQ: error: ?xxx")
            assert len(view.trouble) < MOST_WORDS + 50
            assert view.trouble.encode()

    asyncio.run(run())
