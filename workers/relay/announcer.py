"""What the relay itself signs: group state, system messages, notifications, presence."""

from __future__ import annotations

from workers.nostr import strict_json
from workers.nostr.event import Event
from workers.nostr.tags import Tags
from workers.relay import kinds
from workers.relay.groups import Channel, admin_tags, member_tags, metadata_tags
from workers.relay.hub import Hub
from workers.relay.state import RelayState
from workers.relay.store import Stored


class Announcer:
    """Signs, stores and delivers the relay's own events."""

    def __init__(self, state: RelayState, hub: Hub) -> None:
        self._state = state
        self._hub = hub

    def metadata(self, channel: Channel) -> None:
        """Describes a channel anew (39000)."""
        self._replace(kinds.GROUP_METADATA, channel.id, metadata_tags(channel))

    def roster(self, channel: Channel) -> None:
        """Lists leaders and members anew (39001, 39002)."""
        self._replace(kinds.GROUP_ADMINS, channel.id, admin_tags(channel))
        self._replace(kinds.GROUP_MEMBERS, channel.id, member_tags(channel))

    def system(self, channel: Channel, what: str, **facts: str) -> None:
        """Tells a channel what happened in it (40099)."""
        content = strict_json.dump({"type": what, **facts})
        self._emit(kinds.SYSTEM_MESSAGE, (("h", channel.id),), content, channel.id, self._now())

    def membership(self, kind: int, target: str, channel: str, actor: str) -> None:
        """Tells a key that it was added or removed (44100, 44101).

        Stored without a channel, though it carries ``h``: a global subscription gets it live.
        """
        what = "member_added" if kind == kinds.MEMBER_ADDED else "member_removed"
        content = strict_json.dump({"type": what, "channel_id": channel, "actor": actor})
        self._emit(kind, (("p", target), ("h", channel)), content, None, self._now())

    def direct(self, channel: Channel) -> None:
        """Records a direct conversation for those in it (41001)."""
        tags = (("h", channel.id), *(("p", key) for key in channel.members))
        self._emit(kinds.DM_RECORD, tags, "", channel.id, self._now())

    def presence(self, pubkey: str, status: str) -> Event:
        """One key's presence, as a query for it is answered; never stored (20001)."""
        return self._sign(kinds.PRESENCE, (("p", pubkey),), status, self._now())

    def _replace(self, kind: int, channel: str, tags: Tags) -> None:
        """A new version of group state, later than the last whatever the clock says."""
        last = self._state.store.current(kind, self._state.keypair.pubkey, channel)
        now = self._now()
        moment = now if last is None else max(now, last.event.created_at + 1)
        self._emit(kind, tags, "", channel, moment)

    def _emit(self, kind: int, tags: Tags, content: str, channel: str | None, now: int) -> Stored:
        event = self._sign(kind, tags, content, now)
        while self._state.store.known(event.id) is not None:
            # Removed and added again within one second: each has its own notification.
            now += 1
            event = self._sign(kind, tags, content, now)
        stored = self._state.store.append(event, channel)
        self._hub.publish(stored)
        return stored

    def _sign(self, kind: int, tags: Tags, content: str, now: int) -> Event:
        return Event.sign(self._state.keypair, kind, tags, content, now)

    def _now(self) -> int:
        return int(self._state.clock())
