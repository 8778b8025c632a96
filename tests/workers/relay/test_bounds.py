"""Slow, silent and hostile clients over real sockets: bounded memory, bounded time (§1.3)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from pathlib import Path

import aiohttp
import pytest

from tests.workers.relay.test_server import CHANNEL, HEADERS, HOST, Place, at_a_place, channel_tags
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.http_auth import authorize
from workers.nostr.keys import Keypair

pytestmark = pytest.mark.long

UPGRADE = (
    f"GET / HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n"
    "\r\n"
)
PING, PONG = 0x89, 0x8A


async def ends(reader: asyncio.StreamReader) -> bytes:
    """What still comes until the relay ends the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            found += piece
    return found


async def drip(writer: asyncio.StreamWriter, piece: bytes, every_s: float) -> None:
    """Sends a little, again and again, until nobody listens."""
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every_s)


def test_1_3_a_head_that_never_ends_is_given_up(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(b"GET / HTTP/1.1\r\n")
        dripping = asyncio.create_task(drip(writer, b"X-Slow: loris\r\n", 0.02))
        assert await ends(reader) == b""
        await dripping
        writer.close()

    at_a_place(tmp_path, scenario, request_s=0.2)


def test_1_3_a_silent_connection_is_given_up(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        assert await ends(reader) == b""
        writer.close()

    at_a_place(tmp_path, scenario, request_s=0.1)


def test_1_3_a_head_has_a_size(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Giant: " + b"x" * 100_000)
        assert b" 400 " in (await reader.readline())
        writer.close()

    at_a_place(tmp_path, scenario)


def test_1_3_three_missed_pongs_end_a_half_open_connection(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(UPGRADE.encode())
        await reader.readuntil(b"\r\n\r\n")
        frames = await ends(reader)
        assert frames.count(bytes([PING, 0])) == 3
        writer.close()

    at_a_place(tmp_path, scenario, ping_s=0.03)


def test_1_3_who_answers_pings_stays(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.logged_in(Keypair.generate())
        heard = asyncio.create_task(ws.receive_json())  # who receives, answers pings
        await asyncio.sleep(0.3)
        await ws.send_json(["CLOSE", "x"])
        assert await heard == ["CLOSED", "x", ""]
        await ws.close()

    at_a_place(tmp_path, scenario, ping_s=0.02)


def test_1_3_a_clients_own_ping_is_answered(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(UPGRADE.encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(bytes([PING, 0x82, 0, 0, 0, 0]) + b"hi")  # masked with zeros
        frames = b""
        while bytes([PONG, 2]) + b"hi" not in frames:
            frames += await reader.read(1)
        writer.close()

    at_a_place(tmp_path, scenario)


async def fill(place: Place, user: Keypair, count: int, size: int) -> None:
    """A channel with much text, put in without sockets."""
    core, now = place.relay._core, int(time.time())
    core.admit(user.pubkey, attest(place.owner, user.pubkey), record=True)
    core.submit(Event.sign(user, 9007, channel_tags(CHANNEL), "", now), user.pubkey, over_http=True)
    for number in range(count):
        event = Event.sign(user, 9, [["h", CHANNEL]], f"{number} " + "x" * size, now)
        assert core.submit(event, user.pubkey, over_http=True).accepted


def test_1_3_a_client_that_asks_and_does_not_read_costs_references(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user = Keypair.generate()
        await fill(place, user, 100, 50_000)
        ws = await place.logged_in(user)
        for name in "abcdef":
            await ws.send_json(["REQ", name, {"kinds": [9], "#h": [CHANNEL]}])
        # Nothing is read here for a while, and others are served all the same.
        async with place.http.get(place.base + "/health") as reply:
            assert reply.status == 200
        heard = [(await ws.receive_json())[:2] for _ in range(6 * 101)]
        assert [message for message in heard if message[0] == "EOSE"] == [
            ["EOSE", name] for name in "abcdef"
        ]
        await ws.close()

    at_a_place(tmp_path, scenario, send_buffer=10)


def test_1_3_an_http_client_that_does_not_read_its_answer_is_cut_off(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user = Keypair.generate()
        await fill(place, user, 100, 50_000)
        body = json.dumps([{"kinds": [9], "#h": [CHANNEL]}]).encode()
        proof = authorize(user, f"http://{HOST}/query", "POST", body, time.time())
        head = (
            f"POST /query HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: {proof}\r\n"
            f"x-auth-tag: {attest(place.owner, user.pubkey).to_text()}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        reader, writer = await asyncio.open_unix_connection(str(place.path), limit=1024)
        writer.write(head.encode() + body)
        await writer.drain()
        await asyncio.sleep(0.4)
        assert len(await ends(reader)) < 5_000_000
        writer.close()

    at_a_place(tmp_path, scenario, response_s=0.2)


def test_1_9_a_long_answer_comes_whole_in_pieces(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user = Keypair.generate()
        await fill(place, user, 40, 5_000)
        status, rows = await place.post(user, "/query", [{"kinds": [9], "#h": [CHANNEL]}])
        assert (status, len(rows)) == (200, 40)
        assert all(Event.from_dict(row).verify() for row in rows)

    at_a_place(tmp_path, scenario)


def test_1_2_a_draining_relay_takes_no_connection(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.relay._is_closing = True
        async with place.http.get(
            place.base + "/", headers={**HEADERS, "Upgrade": "websocket"}
        ) as (reply):
            assert (reply.status, await reply.text()) == (503, "relay restarting")
        async with place.http.get(place.base + "/_readiness") as reply:
            assert (reply.status, await reply.json()) == (503, {"status": "shutting_down"})

    at_a_place(tmp_path, scenario)


def test_1_2_forwarded_headers_do_not_count(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        forged = {"Host": "evil", "X-Forwarded-Host": HOST, "Forwarded": f"host={HOST}"}
        async with place.http.post(place.base + "/query", headers=forged) as reply:
            assert reply.status == 404

    at_a_place(tmp_path, scenario)


def test_1_8_a_bare_pubkey_header_proves_nothing(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        headers = {**HEADERS, "X-Pubkey": place.owner.pubkey}
        async with place.http.post(place.base + "/query", headers=headers, data=b"[]") as reply:
            assert (reply.status, await reply.json()) == (401, {"error": "missing Nostr auth"})

    at_a_place(tmp_path, scenario)


def test_connections_are_counted(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        assert place.relay.connections == 0
        ws = await place.logged_in(Keypair.generate())
        assert place.relay.connections == 1
        await ws.close()
        assert ws.close_code == aiohttp.WSCloseCode.OK
        async with place.http.get(place.base + "/health"):
            assert place.relay.connections == 0

    at_a_place(tmp_path, scenario)
