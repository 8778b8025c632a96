"""The embedded relay over real sockets: hosts, routes, frames, ends."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.http_auth import authorize
from workers.nostr.keys import Keypair
from workers.relay.limits import Limits
from workers.relay.server import EmbeddedRelay

HOST = "localhost:3600"
HEADERS = {"Host": HOST}


class Place:
    """A relay on a TCP socket and on a Unix socket, and one HTTP client."""

    def __init__(self, relay: EmbeddedRelay, owner: Keypair, base: str, path: Path) -> None:
        self.relay = relay
        self.owner = owner
        self.base = base
        self.path = path
        self.http: aiohttp.ClientSession

    async def post(self, pair: Keypair, path: str, data: Any) -> tuple[int, Any]:
        body = json.dumps(data).encode()
        headers = {
            **HEADERS,
            "Authorization": authorize(pair, f"http://{HOST}{path}", "POST", body, time.time()),
            "x-auth-tag": attest(self.owner, pair.pubkey).to_text(),
        }
        async with self.http.post(self.base + path, data=body, headers=headers) as reply:
            return reply.status, await reply.json()

    async def logged_in(self, pair: Keypair) -> aiohttp.ClientWebSocketResponse:
        ws = await self.http.ws_connect(self.base, headers=HEADERS)
        verb, challenge = await ws.receive_json()
        assert verb == "AUTH"
        tags = [
            ["relay", f"ws://{HOST}"],
            ["challenge", challenge],
            attest(self.owner, pair.pubkey).to_tag(),
        ]
        event = Event.sign(pair, 22242, tags, "", int(time.time()))
        await ws.send_json(["AUTH", event.to_dict()])
        assert await ws.receive_json() == ["OK", event.id, True, ""]
        return ws


@asynccontextmanager
async def a_place(tmp_path: Path, **limits: Any) -> AsyncIterator[Place]:
    owner = Keypair.generate()
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey, limits=Limits(**limits))
    listener = socket.create_server(("127.0.0.1", 0))
    await relay.serve(listener)
    await relay.serve_unix(tmp_path / "relay.sock")
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    place = Place(relay, owner, base, tmp_path / "relay.sock")
    async with aiohttp.ClientSession() as place.http:
        try:
            yield place
        finally:
            await relay.close()


def at_a_place(tmp_path: Path, scenario: Callable[[Place], Awaitable[None]], **limits: Any) -> None:
    """Runs a scenario against a relay, bounded in time."""

    async def run() -> None:
        async with asyncio.timeout(20), a_place(tmp_path, **limits) as place:
            await scenario(place)

    asyncio.run(run())


def channel_tags(channel: str) -> list[list[str]]:
    return [["h", channel], ["name", "x"], ["visibility", "private"]]


CHANNEL = "11111111-1111-4111-8111-111111111111"


def test_1_5_stored_eose_live_close_over_a_real_socket(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user, agent = Keypair.generate(), Keypair.generate()
        now = int(time.time())

        async def publish(kind: int, tags: list[list[str]], content: str = "") -> Event:
            event = Event.sign(user, kind, tags, content, now)
            status, body = await place.post(user, "/events", event.to_dict())
            assert (status, body["accepted"]) == (200, True)
            return event

        await publish(9007, channel_tags(CHANNEL))
        await publish(9000, [["h", CHANNEL], ["p", agent.pubkey]])
        mention = [["h", CHANNEL], ["p", agent.pubkey]]
        stored = await publish(9, mention, "stored")
        ws = await place.logged_in(agent)
        waiting = asyncio.create_task(place.relay.wait_subscribed(agent.pubkey, CHANNEL, 10))
        wanted = {"kinds": [9], "#h": [CHANNEL], "#p": [agent.pubkey], "since": now - 5}
        await ws.send_json(["REQ", "ch", wanted])
        assert await ws.receive_json() == ["EVENT", "ch", stored.to_dict()]
        assert await ws.receive_json() == ["EOSE", "ch"]
        assert await waiting
        live = await publish(9, mention, "live")
        assert await ws.receive_json() == ["EVENT", "ch", live.to_dict()]
        await ws.send_json(["CLOSE", "ch"])
        assert await ws.receive_json() == ["CLOSED", "ch", ""]
        assert not await place.relay.wait_subscribed(agent.pubkey, CHANNEL, 0)
        answer = Event.sign(agent, 9, [["h", CHANNEL]], "answer", now)
        expected = asyncio.create_task(
            place.relay.wait_event(lambda e: e.pubkey == agent.pubkey, 9)
        )
        await ws.send_json(["EVENT", answer.to_dict()])
        assert await ws.receive_json() == ["OK", answer.id, True, ""]
        assert await expected == answer
        assert place.relay.timeline()[-1] == answer
        await ws.close()

    at_a_place(tmp_path, scenario)


def test_1_1_routes_without_authentication(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        for path, text in (("/health", "ok"), ("/_liveness", "ok")):
            async with place.http.get(place.base + path) as reply:
                assert (reply.status, await reply.text()) == (200, text)
        async with place.http.get(place.base + "/_readiness") as reply:
            assert (reply.status, await reply.json()) == (200, {"status": "ready"})
        for path in ("/", "/info"):
            async with place.http.get(place.base + path) as reply:
                document = json.loads(await reply.text())
                assert reply.content_type == "application/nostr+json"
                assert document["name"] == "Buzz Relay"
                assert document["self"] == place.relay.pubkey
        async with place.http.get(place.base + "/query") as reply:
            assert reply.status == 405
        async with place.http.get(place.base + "/nothing") as reply:
            assert reply.status == 404

    at_a_place(tmp_path, scenario)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:3600", "localhost:3601", "evil", ""])
def test_1_2_an_unknown_host_is_a_404(tmp_path: Path, host: str) -> None:
    async def scenario(place: Place) -> None:
        text = "relay: no community is configured for this host"
        async with place.http.post(place.base + "/query", headers={"Host": host}) as reply:
            assert (reply.status, await reply.json()) == (404, {"error": text})
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await place.http.ws_connect(place.base, headers={"Host": host})
        assert caught.value.status == 404
        async with place.http.get(place.base, headers={"Host": host}) as reply:
            assert reply.status == 200

    at_a_place(tmp_path, scenario)


def test_1_2_case_of_the_host_does_not_matter(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.http.ws_connect(place.base, headers={"Host": "LOCALHOST:3600"})
        assert (await ws.receive_json())[0] == "AUTH"
        await ws.close()

    at_a_place(tmp_path, scenario)


def test_trap_27_who_proves_no_key_in_time_is_disconnected(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.http.ws_connect(place.base, headers=HEADERS)
        assert (await ws.receive_json())[0] == "AUTH"
        assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE

    at_a_place(tmp_path, scenario, auth_timeout_s=0.05)


def test_1_3_a_large_frame_is_refused_in_words(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.logged_in(Keypair.generate())
        await ws.send_str("x" * 524_289)
        assert await ws.receive_json() == [
            "NOTICE",
            "error: frame too large (524289 bytes, limit 524288)",
        ]
        assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE

    at_a_place(tmp_path, scenario)


def test_1_3_a_giant_frame_ends_the_connection(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.logged_in(Keypair.generate())
        await ws.send_bytes(b"x" * 3_000_000)
        message = await ws.receive()
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)

    at_a_place(tmp_path, scenario)


def test_1_3_binary_frames_are_text(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.logged_in(Keypair.generate())
        await ws.send_bytes(b'["CLOSE","x"]')
        assert await ws.receive_json() == ["CLOSED", "x", ""]
        await ws.send_bytes(b"\xff\xfe")
        assert (await ws.receive_json())[0] == "NOTICE"
        await ws.close()

    at_a_place(tmp_path, scenario)


def test_1_1_a_body_has_at_most_1_mib(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        async with place.http.post(
            place.base + "/query", data=io.BytesIO(b"x" * (1024 * 1024 + 1)), headers=HEADERS
        ) as reply:
            assert reply.status == 413

    at_a_place(tmp_path, scenario)


def test_1_2_a_request_without_a_host_is_a_404(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(b"POST /query HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]")
        assert b" 404 " in await reader.readline()
        writer.close()
        await writer.wait_closed()

    at_a_place(tmp_path, scenario)


def test_1_3_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        head = f"POST /query HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9\r\n\r\n["
        writer.write(head.encode())
        assert b" 408 " in await reader.readline()
        writer.close()
        await writer.wait_closed()

    at_a_place(tmp_path, scenario, request_s=0.05)


async def asked_once(host: str, port: int) -> asyncio.StreamWriter:
    """An open connection that the relay has answered on."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
    assert b" 200 " in await reader.readline()
    return writer


def test_a_listener_holds_a_bounded_number_of_connections(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        host, port = place.base.removeprefix("http://").split(":")
        held = [await asked_once(host, int(port)) for _ in range(2)]
        reader, writer = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(1) == b""
        # The other listener has connections of its own.
        other_reader, other_writer = await asyncio.open_unix_connection(str(place.path))
        other_writer.write(b"GET /health HTTP/1.0\r\n\r\n")
        assert b" 200 " in await other_reader.readline()
        for one in (writer, other_writer, *held):
            one.close()

    at_a_place(tmp_path, scenario, connections=2)


def test_1_3_closing_says_1012_and_ends_connections_sockets_and_paths(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ws = await place.logged_in(Keypair.generate())
        began = time.monotonic()
        await place.relay.close()
        await place.relay.close()
        assert time.monotonic() - began < 5
        message = await ws.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1012)
        assert not place.path.exists()
        with pytest.raises(aiohttp.ClientConnectionError):
            await place.http.get(place.base)

    at_a_place(tmp_path, scenario)


def test_a_taken_path_is_an_error_and_leaves_the_relay_whole(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        with pytest.raises(OSError, match="No such file"):
            await place.relay.serve_unix(place.path.parent / "missing" / "relay.sock")
        async with place.http.get(place.base + "/health") as reply:
            assert reply.status == 200

    at_a_place(tmp_path, scenario)


def test_the_last_activity_moves_with_client_messages(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        before = place.relay.last_activity()
        ws = await place.logged_in(Keypair.generate())
        between = place.relay.last_activity()
        await ws.send_json(["CLOSE", "x"])
        await ws.receive_json()
        assert before < between < place.relay.last_activity()
        await ws.close()

    at_a_place(tmp_path, scenario)


def test_1_3_a_slow_reader_is_disconnected_and_hinders_nobody(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user = Keypair.generate()
        now = int(time.time())
        created = Event.sign(user, 9007, channel_tags(CHANNEL), "", now)
        assert (await place.post(user, "/events", created.to_dict()))[0] == 200
        slow = await place.logged_in(user)
        await slow.send_json(["REQ", "s", {"kinds": [9], "#h": [CHANNEL]}])
        await slow.receive_json()
        writer = await place.logged_in(user)
        for number in range(200):
            event = Event.sign(user, 9, [["h", CHANNEL]], f"{number}" + "x" * 100_000, now)
            await writer.send_json(["EVENT", event.to_dict()])
            assert (await writer.receive_json())[2] is True
        received = 0
        while (await slow.receive()).type is aiohttp.WSMsgType.TEXT:
            received += 1
        assert received < 200
        await writer.close()
        await slow.close()

    at_a_place(tmp_path, scenario, send_buffer=8, slow_grace=4)
