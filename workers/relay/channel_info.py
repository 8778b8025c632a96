"""What a client reads of a channel's state, which the relay itself signs."""

from __future__ import annotations

from dataclasses import dataclass

from workers.nostr.event import Event
from workers.nostr.tags import first


@dataclass(frozen=True)
class ChannelInfo:
    """A channel as its metadata (39000) tells."""

    channel_id: str
    name: str
    channel_type: str
    visibility: str
    """``private`` or ``public``."""
    archived: bool
    about: str
    topic: str
    purpose: str
    ttl_seconds: int | None


@dataclass(frozen=True)
class Member:
    """A row of a channel's roster (39002)."""

    pubkey: str
    role: str


def channel_info(event: Event) -> ChannelInfo:
    """Reads a channel's metadata."""
    names = {tag[0] for tag in event.tags}
    ttl = first(event.tags, "ttl")
    return ChannelInfo(
        channel_id=first(event.tags, "d") or "",
        name=first(event.tags, "name") or "",
        channel_type=first(event.tags, "t") or "stream",
        visibility="private" if "private" in names else "public",
        archived=first(event.tags, "archived") == "true",
        about=first(event.tags, "about") or "",
        topic=first(event.tags, "topic") or "",
        purpose=first(event.tags, "purpose") or "",
        ttl_seconds=int(ttl) if ttl is not None and ttl.isdigit() else None,
    )
