"""A client that is not ours, ``nostr-sdk``'s own, talks to the embedded relay."""

from __future__ import annotations

import asyncio
import datetime
import json
import socket
import uuid
from typing import Any

import nostr_sdk

from workers.nostr.attestation import attest
from workers.nostr.keys import Keypair
from workers.relay.server import EmbeddedRelay

PATIENCE = datetime.timedelta(seconds=10)


class Attested(nostr_sdk.Authenticator):  # type: ignore[misc]
    """Answers a challenge (NIP-42) with an owner's attestation inside (NIP-OA)."""

    def __init__(self, keys: Any, tag: tuple[str, ...]) -> None:
        self.keys = keys
        self.tag = tag

    async def make_auth_event(self, relay_url: Any, challenge: str) -> Any:
        tags = [["relay", str(relay_url)], ["challenge", challenge], list(self.tag)]
        return event(self.keys, 22242, tags)


def event(keys: Any, kind: int, tags: list[list[str]], content: str = "") -> Any:
    builder = nostr_sdk.EventBuilder(nostr_sdk.Kind(kind), content)
    return builder.tags([nostr_sdk.Tag.parse(tag) for tag in tags]).finalize(keys)


async def fetch(client: Any, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    target = nostr_sdk.ReqTarget.auto([nostr_sdk.Filter.from_json(json.dumps(wanted))])
    return [json.loads(found.as_json()) for found in await client.fetch_events(target, PATIENCE)]


async def publish(client: Any, made: Any) -> bool:
    return not (await client.send_event(made)).failed


def test_it_connects_proves_its_key_publishes_and_fetches() -> None:
    async def scenario() -> None:
        nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
        owner, user = Keypair.generate(), Keypair.generate()
        keys = nostr_sdk.Keys.parse(user.secret_hex)
        listener = socket.create_server(("127.0.0.1", 0))
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        relay = EmbeddedRelay(owner_pubkey=owner.pubkey, host=host)
        await relay.serve(listener)
        proof = attest(owner, user.pubkey).to_tag()
        client = nostr_sdk.ClientBuilder().authenticator(Attested(keys, proof)).build()
        try:
            await client.add_relay(nostr_sdk.RelayUrl.parse(f"ws://{host}"))
            await client.connect(PATIENCE)
            channel = str(uuid.uuid4())
            assert await publish(client, event(keys, 0, [], '{"display_name":"John"}'))
            tags = [["h", channel], ["name", "x"], ["visibility", "private"]]
            assert await publish(client, event(keys, 9007, tags))
            message = event(keys, 9, [["h", channel]], "a\nb")
            assert await publish(client, message)
            found = await fetch(client, {"kinds": [9], "#h": [channel]})
            assert found == [json.loads(message.as_json())]
            (roster,) = await fetch(client, {"kinds": [39002], "#p": [user.pubkey]})
            assert roster["tags"] == [["d", channel], ["p", user.pubkey, "", "owner"]]
            (profile,) = await fetch(client, {"kinds": [0], "authors": [user.pubkey]})
            assert profile["content"] == '{"display_name":"John"}'
            assert not await publish(client, event(keys, 1, [], "unknown kind"))
            kinds = [held.kind for held in relay.timeline() if held.pubkey == user.pubkey]
            assert kinds == [0, 9007, 9]
        finally:
            await client.shutdown()
            await relay.close()

    asyncio.run(scenario())


async def first_event(stream: Any) -> Any:
    """The next event that a client's notifications tell of."""
    while True:
        note = await stream.next()
        assert note is not None
        if note.is_NEW_EVENT():
            return note.event


def test_it_hears_live_what_another_publishes_and_both_read_what_the_other_encrypted() -> None:
    async def scenario() -> None:
        nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
        owner, user, agent = (Keypair.generate() for _ in range(3))
        listener = socket.create_server(("127.0.0.1", 0))
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        relay = EmbeddedRelay(owner_pubkey=owner.pubkey, host=host)
        await relay.serve(listener)
        keys = [nostr_sdk.Keys.parse(pair.secret_hex) for pair in (user, agent)]
        clients = [
            nostr_sdk.ClientBuilder()
            .authenticator(Attested(held, attest(owner, pair.pubkey).to_tag()))
            .build()
            for held, pair in zip(keys, (user, agent), strict=True)
        ]
        try:
            for client in clients:
                await client.add_relay(nostr_sdk.RelayUrl.parse(f"ws://{host}"))
                await client.connect(PATIENCE)
            writer, reader = clients
            channel = str(uuid.uuid4())
            tags = [["h", channel], ["name", "x"], ["visibility", "private"]]
            assert await publish(writer, event(keys[0], 9007, tags))
            added = [["h", channel], ["p", agent.pubkey]]
            assert await publish(writer, event(keys[0], 9000, added))
            heard = reader.notifications()
            wanted = nostr_sdk.Filter.from_json(json.dumps({"kinds": [9], "#h": [channel]}))
            await reader.subscribe(nostr_sdk.ReqTarget.auto([wanted]))
            assert await relay.wait_subscribed(agent.pubkey, channel, 10)
            secret = user.encrypt(agent.pubkey, "for you alone")
            message = event(keys[0], 9, [["h", channel]], secret)
            assert await publish(writer, message)
            async with asyncio.timeout(10):
                got = await first_event(heard)
            assert got.id() == message.id()
            theirs = nostr_sdk.PublicKey.parse(user.pubkey)
            text = nostr_sdk.nip44_decrypt(keys[1].secret_key(), theirs, got.content())
            assert text == "for you alone"
            answer = nostr_sdk.nip44_encrypt(
                keys[1].secret_key(), theirs, "and back", nostr_sdk.Nip44Version.V2
            )
            assert user.decrypt(agent.pubkey, answer) == "and back"
        finally:
            for client in clients:
                await client.shutdown()
            await relay.close()

    asyncio.run(scenario())
