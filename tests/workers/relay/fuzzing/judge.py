"""What must hold whatever a relay is sent. Written apart from the relay's own rules."""

from __future__ import annotations

from typing import Any

from tests.workers.relay.builders import World
from workers.nostr.event import Event
from workers.nostr.tags import first, values
from workers.relay.groups import uuid_from

GROUP_STATE = (39000, 39001, 39002)
NOTICES = (44100, 44101)
NAMED_ONLY = (1059, 24200, 30174, 44200)
OWN_ONLY = (30179, 30300, 30350)
WITHOUT_CHANNEL = (0, 1059, 10100, 20001, 24200, 44200, *range(30174, 30180), 30300, 30315, 30350)
MAY_STAND_OUTSIDE = (9001, 9002, 9007, 9008, 9021, 9022, 41010)
"""Commands with rules of their own, and those whose author may be gone by now."""
VERBS = {"EVENT": 3, "OK": 4, "EOSE": 2, "CLOSED": 3, "NOTICE": 2, "COUNT": 3, "AUTH": 2}


class BrokenInvariantError(AssertionError):
    """The relay did what it never may."""


class Judge:
    """Watches one relay."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places: dict[str, str | None] = {}
        """The channel of every stored event, told from its tags."""
        self.held = 0
        self.deliveries = 0

    def settle(self) -> None:
        """Takes the present state as given."""
        for event in self.world.state.store.timeline_from(self.held):
            self.places[event.id] = self.place_of(event)
        self.held = len(self.world.state.store)

    def on_reply(
        self, name: str, pubkey: str | None, reply: list[Any], had: dict[str, set[str]]
    ) -> None:
        """Judges one message to one connection, at the moment when it is given out."""
        if VERBS.get(reply[0]) != len(reply):
            raise BrokenInvariantError(f"{name} heard {reply!r}")
        if pubkey is None and (reply[0] in ("EVENT", "EOSE", "COUNT") or reply[2:3] == [True]):
            raise BrokenInvariantError(f"somebody without a key heard {reply!r}")
        if reply[0] != "EVENT" or pubkey is None:
            return
        event = Event.from_dict(reply[2])
        self.must_read(pubkey, event)
        seen = had.setdefault(reply[1], set())
        if event.id in seen and not 20000 <= event.kind < 30000:  # those may be sent again
            raise BrokenInvariantError(f"{name} heard twice on {reply[1]!r}: {event.to_json()}")
        seen.add(event.id)
        self.deliveries += 1

    def must_read(self, pubkey: str, event: Event) -> None:
        """Refuses an event that this key may not see as things stand."""
        if not self.may_read(pubkey, event):
            raise BrokenInvariantError(f"{pubkey} was shown {event.to_json()}")

    def may_read(self, pubkey: str, event: Event) -> bool:
        """Whether a key may see an event."""
        if event.kind in NOTICES:
            return pubkey in values(event.tags, "p")
        if event.pubkey == pubkey and event.kind in WITHOUT_CHANNEL:
            return True
        if event.kind in NAMED_ONLY:
            return pubkey in values(event.tags, "p")
        if event.kind in OWN_ONLY:
            return False
        if event.kind in (30175, 30178):
            return ("shared", "true") in event.tags
        place = self.places.get(event.id, self.place_of(event))
        if place is None:
            return True
        channel = self.world.state.groups.get(place)
        return channel is not None and (channel.visibility == "open" or pubkey in channel.members)

    def place_of(self, event: Event) -> str | None:
        """The channel that an event belongs to."""
        if event.kind in WITHOUT_CHANNEL or event.kind in NOTICES:
            return None
        if event.kind in GROUP_STATE:
            return first(event.tags, "d")
        targets = list(values(event.tags, "e"))
        if event.kind in (5, 7) and targets and targets[-1] in self.places:
            return self.places[targets[-1]]
        if event.kind == 41010:
            people = {event.pubkey, *values(event.tags, "p")}
            conversation = self.world.state.groups.direct(people)
            return None if conversation is None else conversation.id
        place = first(event.tags, "h") or (uuid_from(event.id) if event.kind == 9007 else None)
        return place if place is not None and self.world.state.groups.was_used(place) else None

    def _must_be_at_home(self, event: Event) -> None:
        """Refuses an event under the name of a channel that is closed to its author."""
        if event.kind in MAY_STAND_OUTSIDE:
            return
        for name in values(event.tags, "h"):
            channel = self.world.state.groups.get(name)
            if channel and channel.visibility != "open" and event.pubkey not in channel.members:
                raise BrokenInvariantError(f"slipped into a closed channel: {event.to_json()}")

    def after(self, author: str | None, accepted: dict[str, int], refused: set[str]) -> int:
        """Judges what one message left behind; gives how many events of clients it stored.

        Args:
            author: the connection's key.
            accepted: kinds by id of what was answered as newly taken.
            refused: ids that were answered with a refusal.
        """
        store = self.world.state.store
        new = store.timeline_from(self.held)
        self.settle()
        if len({event.id for event in store.timeline()[-50:]}) != min(50, len(store)):
            raise BrokenInvariantError("an event was stored twice")
        submitted = [event for event in new if event.pubkey != self.world.state.keypair.pubkey]
        for event in new:
            if not event.verify():
                raise BrokenInvariantError(f"stored without a good signature: {event.to_json()}")
        for event in submitted:
            if event.id not in accepted or event.id in refused:
                raise BrokenInvariantError(f"stored and not accepted: {event.to_json()}")
            if event.pubkey != author and event.kind != 1059:
                raise BrokenInvariantError(f"stored under another key: {event.to_json()}")
            self._must_be_at_home(event)
        lasting = {key for key, kind in accepted.items() if not 20000 <= kind < 30000}
        if lasting != {event.id for event in submitted}:
            raise BrokenInvariantError(f"accepted and not stored: {lasting}")
        return len(submitted)
