"""One relay under fire: its people, channels and connections, and what each is told."""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

from tests.workers.relay.builders import URL, World
from tests.workers.relay.fuzzing.judge import Judge
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay.bridge import Bridge
from workers.relay.outbox import Message
from workers.relay.session import Session


class Ear:
    """Hands what one connection is told to the judge at once, while rights are as they were."""

    def __init__(self, judge: Judge, name: str) -> None:
        self.judge = judge
        self.name = name
        self.pubkey: str | None = None
        self.heard: list[list[Any]] = []
        self.had: dict[str, set[str]] = {}
        """Event ids by subscription, since it began."""

    def reply(self, message: Message) -> None:
        """Takes one message."""
        decoded = json.loads(message if isinstance(message, str) else message.text())
        self.judge.on_reply(self.name, self.pubkey, decoded, self.had)
        self.heard.append(decoded)

    push = reply

    def take(self) -> list[list[Any]]:
        """What was heard since the last look."""
        heard, self.heard = self.heard, []
        return heard


class Line:
    """One WebSocket connection without a socket."""

    def __init__(self, world: World, judge: Judge, name: str, pair: Keypair | None) -> None:
        self.pair = pair
        self.ear = Ear(judge, name)
        self.session = Session(world.core, URL, self.ear)
        self.session.open()
        ((_, challenge),) = self.ear.take()
        if pair is not None:
            tags: list[Any] = [["relay", URL], ["challenge", challenge]]
            if pair != world.owner:
                tags.append(attest(world.owner, pair.pubkey).to_tag())
            self.ear.pubkey = pair.pubkey
            self.session.receive(
                json.dumps(["AUTH", world.sign(pair, 22242, tags).to_dict()]),
            )
            assert self.session.pubkey == pair.pubkey

    def say(self, text: str | bytes) -> list[list[Any]]:
        """Sends one message; gives what this connection heard by its end."""
        self._forget_restarted(text)
        self.session.receive(text)
        return self.ear.take()

    def _forget_restarted(self, text: str | bytes) -> None:
        """A REQ or CLOSE begins its subscription anew, after which nothing is a repetition."""
        try:
            verb, name = json.loads(text)[:2]
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if verb in ("REQ", "CLOSE") and isinstance(name, str):
            self.ear.had.pop(name, None)


class Stage:
    """A fresh relay with two closed channels, an open one, a passing one and a conversation."""

    def __init__(self, chance: random.Random) -> None:
        user, agent, other, owner, self.stranger, relay = (
            Keypair.from_secret(f"{chance.getrandbits(250) + 1:064x}") for _ in range(6)
        )
        self.world = World(user=user, agent=agent, other=other, owner=owner)
        self.world.state.keypair = relay
        self.judge = Judge(self.world)
        self.bridge = Bridge(self.world.core)
        world = self.world
        self.people = [world.user, world.agent, world.other, world.owner]
        ids = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(4)]
        self.channels = [
            world.channel(world.agent, channel_id=ids[0]),
            world.channel(creator=world.other, channel_id=ids[1]),
            world.channel(visibility="open", channel_id=ids[2]),
            world.channel(world.agent, ttl="60", channel_id=ids[3]),
        ]
        answer = world.submit(world.user, 41010, [["p", world.agent.pubkey]])
        self.channels.append(json.loads(answer.message.removeprefix("response:"))["channel_id"])
        self.events: list[Event] = [
            world.message(world.user, self.channels[0], "secret one"),
            world.message(world.other, self.channels[1], "secret two"),
            world.message(world.user, self.channels[2], "public"),
        ]
        self.lines = [
            Line(world, self.judge, str(place), pair)
            for place, pair in enumerate([*self.people, world.agent, None])
        ]
        self.judge.settle()
        for line in self.lines:
            for name, channel in zip("abc", self.channels, strict=False):
                line.say(json.dumps(["REQ", name, {"kinds": [9, 7, 40099], "#h": [channel]}]))
            line.say(json.dumps(["REQ", "everything", {"kinds": list(range(50))}]))
        self.judge.settle()

    def close(self) -> None:
        """Ends the connections."""
        for line in self.lines:
            line.session.close()
