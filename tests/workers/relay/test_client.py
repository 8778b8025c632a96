"""The harness's client against the embedded relay, over a Unix socket and over TCP."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from workers.nostr.attestation import attest
from workers.nostr.engram import EngramCodec
from workers.nostr.errors import EngramError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.nostr.tags import thread_of
from workers.relay import EmbeddedRelay, RelayClient, RelayError, RelayRefusedError


class Place:
    """A relay with the trial's user and an agent."""

    def __init__(self, owner: Keypair, relay: EmbeddedRelay, path: Path) -> None:
        self.owner = owner
        self.relay = relay
        self.path = path
        self.user: RelayClient
        self.agent: RelayClient

    def client(self, pair: Keypair) -> RelayClient:
        tag = None if pair == self.owner else attest(self.owner, pair.pubkey)
        return RelayClient("http://localhost:3600", pair, tag, unix_socket=self.path)


@asynccontextmanager
async def a_place(tmp_path: Path) -> AsyncIterator[Place]:
    owner = Keypair.generate()
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey)
    place = Place(owner, relay, tmp_path / "relay.sock")
    async with AsyncExitStack() as stack:
        await relay.serve_unix(place.path)
        stack.push_async_callback(relay.close)
        place.user = await stack.enter_async_context(place.client(Keypair.generate()))
        place.agent = await stack.enter_async_context(place.client(Keypair.generate()))
        yield place


def at_a_place(tmp_path: Path, scenario: Callable[[Place], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30), a_place(tmp_path) as place:
            await scenario(place)

    asyncio.run(run())


@pytest.mark.parametrize("ahead_s", [0, 3600])
def test_a_relay_of_another_time_says_so(tmp_path: Path, ahead_s: int) -> None:
    async def run() -> None:
        owner = Keypair.generate()
        relay = EmbeddedRelay(owner_pubkey=owner.pubkey, clock=lambda: time.time() + ahead_s)
        await relay.serve_unix(tmp_path / "relay.sock")
        try:
            async with Place(owner, relay, tmp_path / "relay.sock").client(owner) as client:
                with pytest.raises(RelayRefusedError) as caught:
                    await client.add_member("none", owner.pubkey)
                assert caught.value.is_for_the_time is (ahead_s > 0)
        finally:
            await relay.close()

    asyncio.run(run())


def test_a_relay_serves_until_any_of_its_sockets_is_closed(tmp_path: Path) -> None:
    async def run() -> None:
        relay = EmbeddedRelay(owner_pubkey=Keypair.generate().pubkey)
        await relay.serve_unix(tmp_path / "relay.sock")
        assert relay.is_serving
        await relay.close()
        assert not relay.is_serving

    asyncio.run(run())


def test_a_channel_from_its_creation_to_its_archive(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user, agent = place.user.keypair.pubkey, place.agent.keypair.pubkey
        channel = await place.user.create_channel("fix-pr-1234", about="why", ttl=3600)
        await place.user.add_member(channel, agent)
        await place.user.add_member(channel, "b" * 64, "bot")
        rows = [(row.pubkey, row.role) for row in await place.agent.members(channel)]
        assert rows == [(user, "owner"), (agent, "member"), ("b" * 64, "bot")]
        (info,) = await place.agent.find_channels("Fix-PR-1234")
        assert info.channel_id == channel
        assert (info.name, info.channel_type, info.visibility) == (
            "fix-pr-1234",
            "stream",
            "private",
        )
        assert (info.archived, info.about, info.ttl_seconds) == (False, "why", 3600)
        assert await place.agent.find_channels("fix-pr") == []
        await place.user.archive(channel)
        await place.user.archive(channel)
        (info,) = await place.agent.find_channels("fix-pr-1234")
        assert info.archived
        assert await place.agent.find_channels("fix-pr-1234", include_archived=False) == []

    at_a_place(tmp_path, scenario)


def test_1_10_who_may_not_read_a_channel_finds_nothing(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        channel = await place.user.create_channel("secret")
        await place.user.send_message(channel, "x")
        assert await place.agent.find_channels("secret") == []
        assert await place.agent.members(channel) == []
        assert await place.agent.read_channel(channel, kinds=[9]) == []
        with pytest.raises(RelayRefusedError, match="restricted: not a channel member") as caught:
            await place.agent.send_message(channel, "y")
        assert caught.value.status == 400

    at_a_place(tmp_path, scenario)


def test_2_3_messages_carry_thread_mentions_and_attestation_in_this_order(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        user, agent = place.user.keypair.pubkey, place.agent.keypair.pubkey
        channel = await place.user.create_channel("trial")
        await place.user.add_member(channel, agent)
        text = "@a\n\n- one\n"
        root = await place.user.send_message(channel, text, mentions=[agent, user, agent])
        proof = attest(place.owner, user).to_tag()[:3]
        assert root.content == text
        assert root.tags[:3] == (("h", channel), ("p", agent), ("p", user))
        assert root.tags[3][:3] == proof
        reply = await place.agent.send_message(channel, "yes", reply_to=root.id)
        assert reply.tags[1] == ("e", root.id, "", "reply")
        nested = await place.user.send_message(channel, "no", reply_to=reply)
        thread = thread_of(nested.tags)
        assert thread is not None
        assert (thread.root, thread.parent) == (root.id, reply.id)
        order = [event for event in place.relay.timeline() if event.kind == 9]
        assert order == [root, reply, nested]
        with pytest.raises(RelayError, match="no event"):
            await place.user.send_message(channel, "x", reply_to="f" * 64)

    at_a_place(tmp_path, scenario)


def test_trap_2_two_profiles_within_one_second(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        wanted = [{"kinds": [0], "authors": [place.user.keypair.pubkey]}]
        for number in range(5):
            await place.user.set_profile(f"name {number}", about="kept" if number == 0 else None)
        (profile,) = await place.agent.query(wanted)
        assert profile.content == '{"display_name":"name 4","about":"kept"}'
        assert profile.tags[0][0] == "auth"

    at_a_place(tmp_path, scenario)


def test_2_5_fields_of_a_profile_that_are_not_named_are_kept(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        content = '{"name":"old","picture":"p"}'
        event = Event.sign(place.user.keypair, 0, (), content, int(time.time()))
        assert (await place.user.publish(event)).accepted
        made = await place.user.set_profile("new")
        assert made.content == '{"name":"old","picture":"p","display_name":"new"}'

    at_a_place(tmp_path, scenario)


def test_a_profile_that_is_as_wanted_is_left_as_it_is(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        first = await place.user.set_profile("name", about="about")
        assert await place.user.set_profile("name") == first
        assert await place.user.set_profile("name", about="about") == first
        assert [event for event in place.relay.timeline() if event.kind == 0] == [first]
        assert await place.user.set_profile("other") != first

    at_a_place(tmp_path, scenario)


def test_a_profile_without_its_proof_is_written_again(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        content = '{"display_name":"name"}'
        bare = Event.sign(place.user.keypair, 0, (), content, int(time.time()))
        assert (await place.user.publish(bare)).accepted
        assert (await place.user.set_profile("name")).tags[0][0] == "auth"

    at_a_place(tmp_path, scenario)


def test_2_14_memories_are_written_read_and_overwritten(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        pair = place.agent.keypair
        events = [await place.agent.write_memory("total", text) for text in ("one", "two")]
        assert events[0].created_at < events[1].created_at
        assert all(tag[0] != "auth" for event in events for tag in event.tags)
        codec = EngramCodec(pair, agent=pair.pubkey, owner=place.owner.pubkey)
        found = await place.agent.query([{"kinds": [30174], "authors": [pair.pubkey]}])
        assert {slug: head.value for slug, head in codec.heads(found).items()} == {
            "mem/total": "two"
        }
        with pytest.raises(EngramError):
            await place.agent.write_memory("No Slug", "x")
        async with place.client(place.owner) as owner:
            with pytest.raises(RelayError, match="owner"):
                await owner.write_memory("x", "y")

    at_a_place(tmp_path, scenario)


def test_2_14_a_lost_race_is_a_conflict_and_a_repeated_publish_is_none(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        pair = place.agent.keypair
        codec = EngramCodec(pair, agent=pair.pubkey, owner=place.owner.pubkey)
        now = int(time.time())
        newest = codec.seal("mem/x", "newest", now + 100)
        assert (await place.agent.publish(newest)).accepted
        again = await place.agent.publish(newest)
        assert again.accepted
        assert again.message.startswith("duplicate:")
        older = codec.seal("mem/x", "older", now)
        lost = await place.agent.publish(older)
        assert lost.accepted
        assert lost.message.startswith("duplicate:")
        with pytest.raises(RelayRefusedError, match="duplicate"):
            await place.agent._publish_new(older)
        await place.agent._publish_new(newest)

    at_a_place(tmp_path, scenario)


def test_3_1_paged_reads_give_a_long_channel_whole(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        channel = await place.user.create_channel("long")
        pair, now = place.user.keypair, int(time.time())
        core = place.relay._core
        for number in range(1203):
            event = Event.sign(pair, 9, [["h", channel]], str(number), now - number // 700)
            assert core.submit(event, pair.pubkey, over_http=True).accepted
        found = await place.user.read_channel(channel, kinds=[9])
        assert {int(event.content) for event in found} == set(range(1203))
        assert await place.user.count([{"kinds": [9], "#h": [channel]}]) == 1203

    at_a_place(tmp_path, scenario)


def test_over_tcp_the_signed_address_is_the_real_one() -> None:
    async def scenario() -> None:
        owner = Keypair.generate()
        listener = socket.create_server(("127.0.0.1", 0))
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        relay = EmbeddedRelay(owner_pubkey=owner.pubkey, host=host)
        await relay.serve(listener)
        try:
            async with RelayClient(f"ws://{host}/", owner, None, timeout_s=10) as client:
                assert await client.ready()
                assert await client.find_channels("x") == []
        finally:
            await relay.close()
        async with RelayClient(f"http://{host}", owner, None, timeout_s=2) as client:
            assert not await client.ready()

    asyncio.run(scenario())


def test_a_client_that_is_not_open_says_so() -> None:
    client = RelayClient("http://localhost:1", Keypair.generate(), None)
    with pytest.raises(RelayError, match="not open"):
        asyncio.run(client.query([]))
