"""Channels (NIP-29 groups): who is in them, who may read them, and how the relay describes them."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from workers.nostr.tags import Tags

ROLES = ("owner", "admin", "member", "guest", "bot")
LEADERS = ("owner", "admin")
VISIBILITIES = ("open", "private")
TYPES = ("stream", "forum", "dm", "workflow")


@dataclass
class Channel:
    """One channel."""

    id: str
    name: str
    visibility: str = "open"
    channel_type: str = "stream"
    about: str = ""
    topic: str = ""
    purpose: str = ""
    archived: bool = False
    ttl_s: int | None = None
    """Idle lifetime; None: it stays."""
    deadline: float | None = None
    """Unix seconds at which an idle channel is archived."""
    members: dict[str, str] = field(default_factory=dict)
    """Role by key, in order of joining."""

    @property
    def is_private(self) -> bool:
        """Whether only members read and write."""
        return self.visibility == "private"

    def is_leader(self, pubkey: str) -> bool:
        """Whether a key is owner or admin."""
        return self.members.get(pubkey) in LEADERS

    def is_last_owner(self, pubkey: str) -> bool:
        """Whether the channel would be left without an owner."""
        owners = [key for key, role in self.members.items() if role == "owner"]
        return owners == [pubkey]

    def admits(self, pubkey: str) -> bool:
        """Whether a key may read and write."""
        return not self.is_private or pubkey in self.members

    def touch(self, now: float) -> None:
        """Puts the end of an idle lifetime off."""
        if self.ttl_s is not None:
            self.deadline = now + self.ttl_s


class Groups:
    """All channels of one relay, the deleted ones excepted."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self._used: set[str] = set()

    def add(self, channel: Channel) -> None:
        """Adds a channel whose id was never used."""
        self._channels[channel.id] = channel
        self._used.add(channel.id)

    def was_used(self, channel_id: str) -> bool:
        """Whether a channel has or had this id."""
        return channel_id in self._used

    def remove(self, channel_id: str) -> None:
        """Forgets a deleted channel; its id stays used."""
        self._channels.pop(channel_id, None)

    def get(self, channel_id: str | None) -> Channel | None:
        """The channel of an id."""
        return None if channel_id is None else self._channels.get(channel_id)

    def direct(self, people: Iterable[str]) -> Channel | None:
        """The open direct conversation of exactly these keys."""
        wanted = set(people)
        found = (
            channel
            for channel in self._channels.values()
            if channel.channel_type == "dm" and channel.is_private and not channel.archived
        )
        return next((channel for channel in found if set(channel.members) == wanted), None)

    def readable(self, pubkey: str) -> frozenset[str]:
        """The ids of all channels that a key may read."""
        return frozenset(key for key, held in self._channels.items() if held.admits(pubkey))

    def expired(self, now: float) -> Iterator[Channel]:
        """Channels whose idle lifetime is over and which are not archived yet."""
        for channel in list(self._channels.values()):
            if channel.deadline is not None and channel.deadline <= now and not channel.archived:
                yield channel


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID in its canonical form."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def uuid_from(event_id: str) -> str:
    """A channel id for the event that asks for a channel: the same whenever it is replayed."""
    return str(uuid.UUID(event_id[:32], version=4))


def metadata_tags(channel: Channel) -> Tags:
    """The tags of kind 39000, in Buzz's order."""
    tags: list[tuple[str, ...]] = [("d", channel.id), ("name", channel.name)]
    if channel.about:
        tags.append(("about", channel.about))
    tags.append(("private",) if channel.is_private else ("public",))
    if channel.channel_type == "dm":
        tags.append(("hidden",))
        tags.extend(("p", key) for key in channel.members)
    tags += [("closed",), ("t", channel.channel_type)]
    if channel.topic:
        tags.append(("topic", channel.topic))
    if channel.purpose:
        tags.append(("purpose", channel.purpose))
    if channel.archived:
        tags.append(("archived", "true"))
    if channel.ttl_s is not None and channel.deadline is not None:
        tags += [("ttl", str(channel.ttl_s)), ("ttl_deadline", _rfc3339(channel.deadline))]
    return tuple(tags)


def admin_tags(channel: Channel) -> Tags:
    """The tags of kind 39001: the role is the third element of a ``p`` tag here."""
    leaders = ((key, role) for key, role in channel.members.items() if role in LEADERS)
    return (("d", channel.id), *(("p", key, role) for key, role in leaders))


def member_tags(channel: Channel) -> Tags:
    """The tags of kind 39002: every member in order of joining, the role fourth."""
    return (("d", channel.id), *(("p", key, "", role) for key, role in channel.members.items()))


def _rfc3339(moment: float) -> str:
    return datetime.datetime.fromtimestamp(int(moment), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
