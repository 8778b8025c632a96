"""The way of an event into the relay: judged, stored, carried out, delivered, in one go.

Nothing here waits, so no other client sees a state between acceptance and effect.
"""

from __future__ import annotations

from workers.nostr import strict_json
from workers.nostr.errors import JsonError
from workers.nostr.event import Event
from workers.nostr.tags import first, values
from workers.relay import kinds, rules
from workers.relay.announcer import Announcer
from workers.relay.answer import ACCEPTED, NOT_A_MEMBER, Answer, refuse
from workers.relay.commands import Commands
from workers.relay.directs import Directs
from workers.relay.groups import Channel, is_uuid, uuid_from
from workers.relay.hub import Hub
from workers.relay.state import RelayState
from workers.relay.store import Stored, passed_on, size_of


class Ingest:
    """Accepts or refuses events for one relay."""

    def __init__(
        self, state: RelayState, hub: Hub, announcer: Announcer, commands: Commands
    ) -> None:
        self._state = state
        self._hub = hub
        self._announcer = announcer
        self._commands = commands
        self._directs = Directs(state, hub, announcer)

    def submit(self, event: Event, author: str, *, over_http: bool) -> Answer:
        """Takes one event from an authenticated key; the same event again is accepted again."""
        fault = rules.before_storage(event, author, self._state, over_http=over_http)
        if fault is not None:
            return fault
        if self._state.store.known(event.id) is not None:
            return Answer(True, "duplicate: event already stored")
        if self._state.store.bytes + size_of(event) > self._state.limits.stored_bytes:
            return refuse("error: relay storage is full")
        self._commands.archive_expired()
        if event.kind == kinds.CREATE_GROUP:
            return self._create(event)
        if event.kind == kinds.DM_OPEN:
            return self._directs.open(event)
        place = NOT_A_MEMBER if self._names_closed_channel(event) else self._place(event)
        if isinstance(place, Answer):
            return place
        fault = self._channel_fault(event, place) or rules.content_fault(event, place, self._state)
        if fault is not None:
            return fault
        return (
            self._pass_on(event, place)
            if kinds.is_ephemeral(event.kind)
            else self._store(event, place)
        )

    def _names_closed_channel(self, event: Event) -> bool:
        """Whether any ``h`` tag names a channel that the author may not use.

        ``#h`` finds an event by every ``h`` it carries, wherever it is stored, so a stranger's
        profile or a message with two of them would else show up in a channel closed to it.
        """
        if event.kind in kinds.OWN_AUTHORISATION:
            return False
        held = (self._state.groups.get(name) for name in values(event.tags, "h"))
        return any(channel is not None and not channel.admits(event.pubkey) for channel in held)

    def _place(self, event: Event) -> Channel | Answer | None:
        """The channel that an event belongs to, None for none, or why it has no place."""
        groups = self._state.groups
        if event.kind in kinds.GLOBAL:
            return None
        if event.kind in (kinds.REACTION, kinds.DELETION):
            target = self._target(event)
            if isinstance(target, Answer):
                return target
            if target is not None:
                return (
                    None if target.channel is None else groups.get(target.channel) or NOT_A_MEMBER
                )
        asked = first(event.tags, "h")
        if asked is None or not is_uuid(asked):
            if event.kind in kinds.NEED_CHANNEL:
                return refuse("invalid: channel-scoped events must include an h tag")
            return None
        # A channel that does not exist reads like one that the caller may not know of.
        return groups.get(asked) or NOT_A_MEMBER

    def _target(self, event: Event) -> Stored | Answer | None:
        """What a reaction or deletion is about; None for a deletion of something never seen.

        A deletion of what is gone already stays in the channel where that was.
        """
        targets = list(values(event.tags, "e"))
        if event.kind == kinds.DELETION:
            if not targets:
                return refuse("invalid: deletion must reference a target event via e tag")
            return self._state.store.known(targets[-1])
        if not targets:
            return refuse("invalid: reaction must reference a target event via e tag")
        target = self._state.store.get(targets[-1])
        return refuse("invalid: reaction target event not found") if target is None else target

    def _channel_fault(self, event: Event, channel: Channel | None) -> Answer | None:
        if channel is None:
            return None
        if event.kind not in kinds.OWN_AUTHORISATION and not channel.admits(event.pubkey):
            return NOT_A_MEMBER
        if channel.archived and event.kind not in kinds.WHILE_ARCHIVED:
            return refuse("invalid: channel is archived")
        return self._commands.judge(event, channel)

    def _create(self, event: Event) -> Answer:
        fault = self._commands.judge_creation(event)
        if fault is not None:
            return fault
        channel_id = first(event.tags, "h") or uuid_from(event.id)
        channel = self._commands.create(event, channel_id)
        self._hub.publish(self._state.store.append(event, channel_id))
        self._commands.announce_creation(channel, event.pubkey)
        return ACCEPTED

    def _pass_on(self, event: Event, channel: Channel | None) -> Answer:
        if event.kind == kinds.PRESENCE:
            status = status_of(event.content)
            if status == "offline":
                self._state.presence.pop(event.pubkey, None)
            else:
                self._state.presence[event.pubkey] = status
        self._hub.publish(passed_on(event, None if channel is None else channel.id))
        return ACCEPTED

    def _store(self, event: Event, channel: Channel | None) -> Answer:
        channel_id = None if channel is None else channel.id
        if self._state.store.loses(event, channel_id):
            return Answer(True, "duplicate: a newer version is stored")
        stored = self._state.store.append(event, channel_id)
        if channel is not None:
            channel.touch(self._state.clock())
            self._commands.carry_out(event, channel)
        if event.kind == kinds.REACTION:
            self._state.reactions[rules.reaction_key(event)] = event.id
        if event.kind in (kinds.DELETION, kinds.DELETE_EVENT):
            self._delete_targets(event, channel)
        self._hub.publish(stored)
        return ACCEPTED

    def _delete_targets(self, event: Event, channel: Channel | None) -> None:
        for target in values(event.tags, "e"):
            stored = self._state.store.get(target)
            if stored is not None:
                self._state.store.hide(stored)
        if event.kind == kinds.DELETE_EVENT and channel is not None:
            self._announcer.system(channel, "message_deleted", actor=event.pubkey)


def status_of(content: str) -> str:
    """The status that a presence event names, bare or as JSON with ``status``."""
    try:
        data = strict_json.parse(content)
    except JsonError:
        return content
    status = data.get("status") if isinstance(data, dict) else None
    return status if isinstance(status, str) else content
