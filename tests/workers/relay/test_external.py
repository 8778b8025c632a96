"""One trial's view of a deployment's relay, and the bytes that it carries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from tests.workers.relay.deployment import AUTHORITY, Deployment, deployment, listening
from workers.nostr.attestation import attest
from workers.nostr.keys import Keypair
from workers.relay import ExternalRelay, RelayRefusedError, feed
from workers.relay.forwarder import PIECE, Forwarder
from workers.relay.rates import Quota, Rates

WAIT_S = 20.0
Scenario = Callable[[Deployment], Awaitable[None]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PAUSES_S", (0.01,))


def at_a_deployment(scenario: Scenario, rates: Rates | None = None) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), deployment(rates) as there:
            await scenario(there)

    asyncio.run(run())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - what is asked of has no events of its own
            await asyncio.sleep(0.002)


def test_trap_1_messages_of_one_second_keep_the_order_in_which_they_came() -> None:
    async def scenario(there: Deployment) -> None:
        user = there.party()
        view = there.view()
        async with view.client(user) as client:
            channel = await client.create_channel("trial")
            await view.watch(user, channel)
            sent = [await client.send_message(channel, str(n)) for n in range(12)]
            last = await view.wait_event(lambda event: event.content == "11", WAIT_S)
        assert last == sent[-1]
        assert [event for event in view.timeline() if event.kind == 9] == sent
        assert sent != sorted(sent, key=lambda event: (event.created_at, event.id))
        assert (view.is_serving, view.trouble) == (True, "")
        await view.close()
        assert not view.is_serving

    at_a_deployment(scenario)


def test_a_connection_that_breaks_is_made_again_and_nothing_is_missed() -> None:
    async def scenario(there: Deployment) -> None:
        user, (way, port) = there.party(), await forwarded(there)
        view = there.view(port)
        async with there.view().client(user) as client:
            channel = await client.create_channel("trial")
            await view.watch(user, channel)
            await client.send_message(channel, "before")
            await view.wait_event(lambda event: event.content == "before", WAIT_S)
            await way.close()
            await until(lambda: view.trouble != "")
            assert view.is_serving
            await client.send_message(channel, "meanwhile")
            way, _ = await forwarded(there, port)
            await until(lambda: view.trouble == "")
            await client.send_message(channel, "after")
            await view.wait_event(lambda event: event.content == "after", WAIT_S)
        texts = [event.content for event in view.timeline() if event.kind == 9]
        assert texts == ["before", "meanwhile", "after"]
        await view.close()
        await way.close()

    at_a_deployment(scenario)


def test_a_relay_that_does_not_come_back_is_lost() -> None:
    async def scenario(there: Deployment) -> None:
        user = there.party()
        view = there.view(lost_s=0.05)
        async with view.client(user) as client:
            await view.watch(user, await client.create_channel("trial"))
        assert view.is_serving
        await there.relay.close()
        await until(lambda: not view.is_serving)
        assert view.trouble
        await view.close()

    at_a_deployment(scenario)


def test_who_may_not_listen_is_told_at_once() -> None:
    async def scenario(there: Deployment) -> None:
        stranger = Keypair.generate()
        holder = there.party()._replace(attestation=attest(Keypair.generate(), stranger.pubkey))
        view = there.view()
        with pytest.raises(RelayRefusedError, match="restricted: not a relay member"):
            await view.watch(holder._replace(keypair=stranger), "none")
        assert not view.is_serving
        await view.close()

    at_a_deployment(scenario)


def test_1_2_a_community_of_another_name_is_not_found() -> None:
    async def scenario(there: Deployment) -> None:
        view = ExternalRelay("ws://other.test:3600", gateway=("127.0.0.1", there.port))
        async with view.client(there.party()) as client:
            with pytest.raises(RelayRefusedError, match="no community") as caught:
                await client.create_channel("trial")
        assert caught.value.status == 404
        with pytest.raises(RelayRefusedError, match="no community"):
            await view.watch(there.party(), "none")
        await view.close()

    at_a_deployment(scenario)


@pytest.mark.long
def test_1_7_a_subscription_that_comes_too_soon_is_asked_for_again() -> None:
    async def scenario(there: Deployment) -> None:
        user = there.party()
        view, second = there.view(), there.view()
        async with view.client(user) as client:
            channel = await client.create_channel("trial")
        await view.watch(user, channel)
        await second.watch(user, channel)
        assert {len(each.timeline()) for each in (view, second)} == {len(view.timeline())}
        await view.close()
        await second.close()

    at_a_deployment(scenario, Rates(frames=Quota(1, 1)))


async def forwarded(there: Deployment, port: int = 0) -> tuple[Forwarder, int]:
    """A way to the deployment that can be cut."""
    way, listener = Forwarder("127.0.0.1", there.port), listening(port)
    await way.serve(listener)
    return way, int(listener.getsockname()[1])


def test_agents_reach_the_relay_by_its_own_name_through_the_carried_bytes() -> None:
    async def scenario(there: Deployment) -> None:
        view, listener = there.view(), listening()
        await view.serve(listener)
        before = view.last_activity()
        agent, headers = there.party(), {"Host": AUTHORITY}
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, headers=headers) as socket,
        ):
            assert (await socket.receive_json())[0] == "AUTH"
            assert view.connections == 1
        await until(lambda: view.connections == 0)
        assert view.last_activity() > before
        assert agent.keypair.pubkey and not view.trouble
        await view.close()

    at_a_deployment(scenario)


def test_the_address_says_what_a_container_needs() -> None:
    named = ExternalRelay("wss://relay.example.org")
    assert (named.port, named.loopback_name, named.sees_subscriptions) == (
        443,
        "relay.example.org",
        False,
    )
    own = ExternalRelay("ws://localhost:3600/")
    assert (own.url, own.port, own.loopback_name) == ("ws://localhost:3600", 3600, None)


def test_bytes_go_both_ways_after_one_side_has_said_all_it_has_to_say() -> None:
    async def run() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read())  # only at the other's end
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        way, listener = Forwarder(*server.sockets[0].getsockname()), listening()
        await way.serve(listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        data = bytes(range(256)) * (PIECE // 64)
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(WAIT_S):
            assert await reader.read() == data
        writer.close()
        await until(lambda: way.connections == 0)
        server.close()
        await way.close()
        assert not way.is_serving

    asyncio.run(run())


def test_a_relay_that_is_not_there_ends_the_agents_connection_and_is_told() -> None:
    async def run() -> None:
        gone = listening()
        port = gone.getsockname()[1]
        gone.close()
        view = ExternalRelay("ws://relay.test", gateway=("127.0.0.1", port))
        listener = listening()
        await view.serve(listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(OSError, match="reset"):
                assert await reader.read() == b""
                raise OSError("reset")  # an end is as good as a reset
        writer.close()
        assert f"127.0.0.1:{port}" in view.trouble
        assert view.is_serving
        await view.close()

    asyncio.run(run())


def test_closing_ends_what_is_open() -> None:
    async def scenario(there: Deployment) -> None:
        view, listener = there.view(), listening()
        await view.serve(listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        await until(lambda: view.connections == 1)
        started = time.monotonic()
        await view.close()
        await view.close()
        assert view.connections == 0
        with pytest.raises(OSError):
            if await reader.read() == b"":
                raise ConnectionResetError
        assert time.monotonic() - started < WAIT_S
        writer.close()

    at_a_deployment(scenario)
