"""A relay without sockets, its people, and short ways to act on it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.filters import Filter
from workers.nostr.keys import Keypair
from workers.relay.answer import Answer
from workers.relay.core import RelayCore
from workers.relay.limits import Limits
from workers.relay.outbox import Message
from workers.relay.query import BridgeFilter
from workers.relay.session import Session
from workers.relay.state import RelayState

NOW = 1_700_000_000
HOST = "localhost:3600"
URL = f"ws://{HOST}"


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """One relay and those who use it."""

    clock: Clock = field(default_factory=Clock)
    owner: Keypair = field(default_factory=Keypair.generate)
    user: Keypair = field(default_factory=Keypair.generate)
    agent: Keypair = field(default_factory=Keypair.generate)
    other: Keypair = field(default_factory=Keypair.generate)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self.state = RelayState(self.owner.pubkey, HOST, self.clock, limits=self.limits)
        self.core = RelayCore(self.state)
        for pair in (self.user, self.agent, self.other):
            assert self.core.admit(pair.pubkey, attest(self.owner, pair.pubkey), record=True)

    def sign(
        self,
        author: Keypair,
        kind: int,
        tags: Iterable[Sequence[str]] = (),
        content: str = "",
        moment: int | None = None,
    ) -> Event:
        """An event of now."""
        when = int(self.clock()) if moment is None else moment
        return Event.sign(author, kind, tags, content, when)

    def submit(
        self,
        author: Keypair,
        kind: int,
        tags: Iterable[Sequence[str]] = (),
        content: str = "",
        *,
        over_http: bool = True,
    ) -> Answer:
        """Signs and submits an event of now."""
        event = self.sign(author, kind, tags, content)
        return self.core.submit(event, author.pubkey, over_http=over_http)

    def accept(
        self,
        author: Keypair,
        kind: int,
        tags: Iterable[Sequence[str]] = (),
        content: str = "",
        *,
        over_http: bool = True,
    ) -> Event:
        """Submits an event that must be accepted; gives it."""
        event = self.sign(author, kind, tags, content)
        answer = self.core.submit(event, author.pubkey, over_http=over_http)
        assert answer.accepted, answer
        return event

    def channel(
        self,
        *members: Keypair,
        creator: Keypair | None = None,
        channel_id: str | None = None,
        **fields: str,
    ) -> str:
        """A channel, private unless said, created by the user unless said."""
        creator = creator or self.user
        channel = channel_id or str(uuid.uuid4())
        named = {"name": "trial", "visibility": "private", **fields}
        self.accept(creator, 9007, [["h", channel], *map(list, named.items())])
        for pair in members:
            self.accept(creator, 9000, [["h", channel], ["p", pair.pubkey]])
        return channel

    def message(
        self,
        author: Keypair,
        channel: str,
        content: str = "hello",
        *tags: Sequence[str],
    ) -> Event:
        """A message that must be accepted."""
        return self.accept(author, 9, [["h", channel], *tags], content)

    def query(self, caller: Keypair, *filters: dict[str, Any]) -> list[Event]:
        """What the bridge gives, gates aside."""
        asked = [BridgeFilter.from_dict(data) for data in filters]
        return self.core.queries.bridge(asked, caller.pubkey)

    def stored(self, caller: Keypair, wanted: dict[str, Any]) -> list[Event]:
        """What one filter of a REQ gives, gates aside."""
        found = self.core.queries.stored(Filter.from_dict(wanted), caller.pubkey)
        return [stored.event for stored in found]

    def members(self, channel: str) -> dict[str, str]:
        """Role by key, as 39002 tells its creator."""
        (event,) = self.stored(self.user, {"kinds": [39002], "#d": [channel]})
        return {tag[1]: tag[3] for tag in event.tags if tag[0] == "p"}

    def metadata(self, channel: str, caller: Keypair | None = None) -> Event:
        """The channel's 39000."""
        (event,) = self.stored(caller or self.user, {"kinds": [39000], "#d": [channel]})
        return event


class ListOutbox:
    """Keeps what a session sends."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def reply(self, message: Message) -> None:
        self.sent.append(json.loads(message if isinstance(message, str) else message.text()))

    push = reply

    def take(self) -> list[Any]:
        """What was sent since the last look."""
        sent, self.sent = self.sent, []
        return sent


class Talker:
    """A client of a session."""

    def __init__(self, world: World, *, url: str = URL) -> None:
        self.world = world
        self.outbox = ListOutbox()
        self.session = Session(world.core, url, self.outbox)
        self.session.open()
        ((verb, self.challenge),) = self.outbox.take()
        assert verb == "AUTH"

    def say(self, *message: Any) -> list[Any]:
        """Sends one message; gives all that came back."""
        return self.raw(json.dumps(message))

    def raw(self, text: str | bytes) -> list[Any]:
        """Sends any text."""
        self.session.receive(text)
        return self.outbox.take()

    def auth_event(self, pair: Keypair, *extra: Sequence[str], url: str = URL) -> Event:
        """A good answer to the challenge, with the owner's attestation."""
        tags: list[Sequence[str]] = [["relay", url], ["challenge", self.challenge]]
        if pair != self.world.owner:
            tags.append(attest(self.world.owner, pair.pubkey).to_tag())
        return self.world.sign(pair, 22242, [*tags, *extra])

    def log_in(self, pair: Keypair) -> Talker:
        """Proves a key."""
        event = self.auth_event(pair)
        assert self.say("AUTH", event.to_dict()) == [["OK", event.id, True, ""]]
        return self
