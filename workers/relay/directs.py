"""Direct conversations: a hidden private channel for a set of people, opened by any of them."""

from __future__ import annotations

from workers.nostr import strict_json
from workers.nostr.event import Event
from workers.nostr.tags import is_hex64, values
from workers.relay import kinds
from workers.relay.announcer import Announcer
from workers.relay.answer import Answer, refuse
from workers.relay.groups import Channel, uuid_from
from workers.relay.hub import Hub
from workers.relay.state import RelayState

MAX_OTHERS = 8


class Directs:
    """Opens direct conversations (41010)."""

    def __init__(self, state: RelayState, hub: Hub, announcer: Announcer) -> None:
        self._state = state
        self._hub = hub
        self._announcer = announcer

    def open(self, event: Event) -> Answer:
        """Opens the conversation of an event's author and those it names, or finds it again.

        The answer tells which channel it is, and whether it is new.
        """
        named = [value.lower() for value in values(event.tags, "p")]
        others = [key for key in dict.fromkeys(named) if key != event.pubkey]
        if not all(map(is_hex64, others)) or not 1 <= len(others) <= MAX_OTHERS:
            return refuse(f"invalid: a direct conversation is with 1 to {MAX_OTHERS} other keys")
        people = [event.pubkey, *others]
        channel = self._state.groups.direct(people)
        is_new = channel is None
        if channel is None:
            channel = self._create(uuid_from(event.id), people)
        self._hub.publish(self._state.store.append(event, channel.id))
        if is_new:
            self._announce(channel, event.pubkey)
        facts = {"channel_id": channel.id, "created": is_new}
        return Answer(True, f"response:{strict_json.dump(facts)}")

    def _create(self, channel_id: str, people: list[str]) -> Channel:
        channel = Channel(
            id=channel_id,
            name="dm",
            visibility="private",
            channel_type="dm",
            members=dict.fromkeys(people, "member"),
        )
        self._state.groups.add(channel)
        return channel

    def _announce(self, channel: Channel, author: str) -> None:
        self._announcer.metadata(channel)
        self._announcer.roster(channel)
        self._announcer.direct(channel)
        for member in channel.members:
            self._announcer.membership(kinds.MEMBER_ADDED, member, channel.id, author)
