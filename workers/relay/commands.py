"""Group commands (NIP-29 as Buzz has it): who may give each, and what it changes.

A command is judged before it is stored and carried out right after, in one go: whoever reads
the answer reads a relay on which it has taken effect.
"""

from __future__ import annotations

from workers.nostr import strict_json
from workers.nostr.errors import JsonError
from workers.nostr.event import Event
from workers.nostr.tags import first, is_hex64, values
from workers.relay import kinds
from workers.relay.announcer import Announcer
from workers.relay.answer import NOT_A_MEMBER, Answer, refuse
from workers.relay.groups import LEADERS, ROLES, TYPES, VISIBILITIES, Channel, is_uuid
from workers.relay.hub import Hub
from workers.relay.state import RelayState

MAX_TTL_S = 2**31 - 1
_GUARDED_FIELDS = ("name", "about", "archived", "visibility", "ttl")
_NOT_AUTHORISED = refuse(
    "invalid: actor not authorized for name/about/archived/visibility/ttl changes"
)
_LAST_OWNER = refuse("invalid: the last owner cannot be removed or demoted")


class Commands:
    """Judges and carries out group commands."""

    def __init__(self, state: RelayState, hub: Hub, announcer: Announcer) -> None:
        self._state = state
        self._hub = hub
        self._announcer = announcer
        self._judges = {
            kinds.ADD_MEMBER: self._judge_add,
            kinds.REMOVE_MEMBER: self._judge_remove,
            kinds.EDIT_GROUP: self._judge_edit,
            kinds.DELETE_GROUP: self._judge_delete,
            kinds.JOIN: self._judge_join,
            kinds.LEAVE: self._judge_leave,
        }
        self._effects = {
            kinds.ADD_MEMBER: self._add,
            kinds.REMOVE_MEMBER: self._remove,
            kinds.EDIT_GROUP: self._edit,
            kinds.DELETE_GROUP: self._delete,
            kinds.JOIN: self._join,
            kinds.LEAVE: self._leave,
        }

    def judge(self, event: Event, channel: Channel) -> Answer | None:
        """Why a command on an existing channel is refused, or None; other kinds pass."""
        judge = self._judges.get(event.kind)
        return None if judge is None else judge(event, channel)

    def carry_out(self, event: Event, channel: Channel) -> None:
        """Changes the channel as a stored command says; other kinds change nothing."""
        effect = self._effects.get(event.kind)
        if effect is not None:
            effect(event, channel)

    def judge_creation(self, event: Event) -> Answer | None:
        """Why a channel is not created, or None (9007)."""
        asked = first(event.tags, "h")
        if asked is not None and not is_uuid(asked):
            return refuse("invalid: h tag must be a channel UUID")
        if asked is not None and self._state.groups.was_used(asked):
            return Answer(False, "duplicate: channel already exists")
        if not _channel_name(event):
            return refuse("invalid: channel creation requires a name tag")
        return _fields_fault(event)

    def create(self, event: Event, channel_id: str) -> Channel:
        """Creates the channel that a judged command asks for, its author as owner."""
        ttl = first(event.tags, "ttl")
        channel = Channel(
            id=channel_id,
            name=_channel_name(event),
            visibility=first(event.tags, "visibility") or "open",
            channel_type=first(event.tags, "channel_type") or "stream",
            about=first(event.tags, "about") or "",
            ttl_s=int(ttl) if ttl else None,
            members={event.pubkey: "owner"},
        )
        channel.touch(self._state.clock())
        self._state.groups.add(channel)
        return channel

    def announce_creation(self, channel: Channel, author: str) -> None:
        """Describes a new channel to its owner."""
        self._announcer.system(channel, "channel_created", actor=author)
        self._announcer.metadata(channel)
        self._announcer.roster(channel)
        self._announcer.membership(kinds.MEMBER_ADDED, author, channel.id, author)

    def archive_expired(self) -> None:
        """Archives the channels whose idle lifetime is over."""
        for channel in self._state.groups.expired(self._state.clock()):
            channel.archived = True
            self._announcer.system(channel, "channel_auto_archived")
            self._announcer.metadata(channel)

    def _judge_add(self, event: Event, channel: Channel) -> Answer | None:
        target, role = _target(event), first(event.tags, "role")
        if target is None:
            return refuse("invalid: exactly one p tag must name the member")
        if role is not None and role not in ROLES:
            return refuse("invalid: unknown role")
        held = channel.members.get(target)
        if (role in LEADERS or (held and role and role != held)) and not channel.is_leader(
            event.pubkey
        ):
            return refuse("invalid: actor not authorized to assign this role")
        if held == "owner" and role not in (None, "owner") and channel.is_last_owner(target):
            return _LAST_OWNER
        return self._policy_fault(event.pubkey, target) if held is None else None

    def _policy_fault(self, actor: str, target: str) -> Answer | None:
        """The target's own word on who may add it (10100); without one, anyone may."""
        stored = self._state.store.current(kinds.AGENT_PROFILE, target, "")
        if actor == target or stored is None:
            return None
        policy = add_policy(stored.event.content)
        if policy == "nobody":
            return refuse("policy:nobody: this agent may not be added to channels")
        if policy == "owner_only" and not self._state.is_owner_of(actor, target):
            return refuse("policy:owner_only: only the agent's owner may add it to channels")
        return None

    def _add(self, event: Event, channel: Channel) -> None:
        target = _target(event) or ""
        held = channel.members.get(target)
        channel.members[target] = first(event.tags, "role") or held or "member"
        self._announcer.roster(channel)
        if held is None:
            self._announcer.system(channel, "member_joined", actor=event.pubkey, target=target)
            self._announcer.membership(kinds.MEMBER_ADDED, target, channel.id, event.pubkey)

    def _judge_remove(self, event: Event, channel: Channel) -> Answer | None:
        target = _target(event)
        if target is None:
            return refuse("invalid: exactly one p tag must name the member")
        if not (
            target == event.pubkey
            or channel.is_leader(event.pubkey)
            or (event.pubkey in channel.members and self._state.is_owner_of(event.pubkey, target))
        ):
            return refuse("invalid: actor not authorized to remove this member")
        if target not in channel.members:
            return refuse("invalid: target is not a channel member")
        return _LAST_OWNER if channel.is_last_owner(target) else None

    def _remove(self, event: Event, channel: Channel) -> None:
        target = _target(event) or ""
        what = "member_left" if target == event.pubkey else "member_removed"
        self._drop(channel, target, event.pubkey, what)

    def _judge_leave(self, event: Event, channel: Channel) -> Answer | None:
        if event.pubkey not in channel.members:
            return NOT_A_MEMBER
        return _LAST_OWNER if channel.is_last_owner(event.pubkey) else None

    def _leave(self, event: Event, channel: Channel) -> None:
        self._drop(channel, event.pubkey, event.pubkey, "member_left")

    def _drop(self, channel: Channel, target: str, actor: str, what: str) -> None:
        del channel.members[target]
        self._announcer.roster(channel)
        self._announcer.system(channel, what, actor=actor, target=target)
        self._announcer.membership(kinds.MEMBER_REMOVED, target, channel.id, actor)
        self._hub.revoke(channel.id)

    def _judge_join(self, event: Event, channel: Channel) -> Answer | None:
        return refuse("restricted: channel is private") if channel.is_private else None

    def _join(self, event: Event, channel: Channel) -> None:
        if event.pubkey in channel.members:
            return
        channel.members[event.pubkey] = "member"
        self._announcer.roster(channel)
        self._announcer.system(channel, "member_joined", actor=event.pubkey, target=event.pubkey)
        self._announcer.membership(kinds.MEMBER_ADDED, event.pubkey, channel.id, event.pubkey)

    def _judge_edit(self, event: Event, channel: Channel) -> Answer | None:
        named = {tag[0] for tag in event.tags if len(tag) >= 2}
        guarded = not named.isdisjoint(_GUARDED_FIELDS)
        if guarded and not channel.is_leader(event.pubkey):
            # An agent's channel answers to the human who owns the agent.
            owners = [key for key, role in channel.members.items() if role == "owner"]
            if not any(self._state.is_owner_of(event.pubkey, owner) for owner in owners):
                return _NOT_AUTHORISED
        if not guarded and named.isdisjoint(("topic", "purpose")):
            return refuse("invalid: no field to change")
        if not guarded and event.pubkey not in channel.members:
            return NOT_A_MEMBER
        if "name" in named and not _channel_name(event):
            return refuse("invalid: channel name is empty")
        if first(event.tags, "archived") not in (None, "true", "false"):
            return refuse("invalid: archived must be true or false")
        return _fields_fault(event)

    def _edit(self, event: Event, channel: Channel) -> None:
        was_private, was_archived = channel.is_private, channel.archived
        reports = _apply_fields(event, channel)
        channel.touch(self._state.clock())
        for what in reports:
            self._announcer.system(channel, what, actor=event.pubkey)
        self._announcer.metadata(channel)
        if channel.is_private and not was_private:
            self._hub.revoke(channel.id)
        if was_archived and not channel.archived:
            for member in channel.members:
                self._announcer.membership(kinds.MEMBER_ADDED, member, channel.id, event.pubkey)

    def _judge_delete(self, event: Event, channel: Channel) -> Answer | None:
        if channel.members.get(event.pubkey) == "owner":
            return None
        if not channel.admits(event.pubkey):
            return NOT_A_MEMBER
        return refuse("invalid: only the owner may delete a channel")

    def _delete(self, event: Event, channel: Channel) -> None:
        self._announcer.system(channel, "channel_deleted", actor=event.pubkey)
        self._state.groups.remove(channel.id)
        for stored in self._state.store.in_channel(channel.id):
            if stored.channel == channel.id:
                self._state.store.hide(stored)
        self._hub.revoke(channel.id)


def add_policy(content: str) -> str | None:
    """The ``channel_add_policy`` of an agent profile (10100), or None where it is malformed."""
    try:
        data = strict_json.parse(content)
    except JsonError:
        return None
    policy = data.get("channel_add_policy") if isinstance(data, dict) else None
    return policy if policy in ("anyone", "owner_only", "nobody") else None


def _target(event: Event) -> str | None:
    """The one key that a command is about."""
    found = list(values(event.tags, "p"))
    return found[0].lower() if len(found) == 1 and is_hex64(found[0].lower()) else None


def _channel_name(event: Event) -> str:
    return (first(event.tags, "name") or "").strip().lstrip("#").strip()


def _fields_fault(event: Event) -> Answer | None:
    """What is wrong with the fields of a creation or an edit, or None."""
    if first(event.tags, "visibility") not in (None, *VISIBILITIES):
        return refuse("invalid: visibility must be open or private")
    if first(event.tags, "channel_type") not in (None, *TYPES):
        return refuse("invalid: channel_type must be stream, forum, dm or workflow")
    ttl = first(event.tags, "ttl")
    if ttl and not (ttl.isascii() and ttl.isdigit() and 0 < int(ttl[:11]) <= MAX_TTL_S):
        return refuse("invalid: ttl must be a positive number of seconds")
    return None


def _apply_fields(event: Event, channel: Channel) -> list[str]:
    """Sets what an edit names, of a field named twice the first; gives the messages due."""
    reports: list[str] = []
    for field in dict.fromkeys(tag[0] for tag in event.tags):
        value = first(event.tags, field)
        if value is None:
            continue
        if field == "name":
            channel.name = _channel_name(event)
        elif field == "about":
            channel.about = value
        elif field in ("topic", "purpose"):
            setattr(channel, field, value)
            reports.append(f"{field}_changed")
        elif field == "visibility":
            channel.visibility = value
            reports.append("visibility_changed")
        elif field == "ttl":
            channel.ttl_s = int(value) if value else None
            channel.deadline = None
            reports.append("ttl_changed")
        elif field == "archived":
            channel.archived = value == "true"
            reports.append("channel_archived" if channel.archived else "channel_unarchived")
    return reports
