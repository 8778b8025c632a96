"""The rules of accepting an event, each a small function; reasons are literal (Buzz).

``before_storage`` holds those that need nothing but the event and the caller, in the order that
decides which reason is heard; ``content_fault`` those of single kinds.
"""

from __future__ import annotations

from workers.nostr import engram, strict_json
from workers.nostr.errors import JsonError
from workers.nostr.event import Event
from workers.nostr.tags import first, is_hex64, thread_of, values
from workers.relay import kinds
from workers.relay.answer import Answer, refuse
from workers.relay.commands import add_policy
from workers.relay.groups import Channel
from workers.relay.state import RelayState
from workers.relay.store import Stored

MAX_D_BYTES = 1024
MAX_REACTION_CHARS = 64


def before_storage(
    event: Event, author: str, state: RelayState, *, over_http: bool
) -> Answer | None:
    """Why an event is refused whatever the relay holds, or None."""
    if event.kind == kinds.AUTH:
        return refuse("invalid: authentication events are never stored")
    if event.kind in kinds.NOTIFICATIONS:
        return refuse("invalid: membership notifications are relay-signed only")
    if over_http and (event.kind == kinds.GIFT_WRAP or kinds.is_ephemeral(event.kind)):
        return refuse(f"invalid: kind {event.kind} is only accepted via WebSocket")
    if event.kind in kinds.RELAY_ONLY:
        return refuse("restricted: relay-only kind")
    if not event.verify():
        return refuse("invalid: event id or signature verification failed")
    if abs(event.created_at - state.clock()) > state.limits.event_tolerance_s:
        return refuse("invalid: event timestamp too far from server time")
    if len(event.content.encode()) > state.limits.content_bytes:
        return refuse(f"invalid: content exceeds {state.limits.content_bytes} bytes")
    if event.pubkey != author and event.kind != kinds.GIFT_WRAP:
        return refuse("invalid: event pubkey does not match authenticated identity", 403)
    if event.kind not in kinds.KNOWN:
        return refuse("restricted: unknown event kind")
    return None


def content_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    """Why an event of its kind is refused, or None. Group commands are judged elsewhere."""
    if (
        kinds.is_addressable(event.kind)
        and len((first(event.tags, "d") or "").encode()) > MAX_D_BYTES
    ):
        return refuse(f"invalid: d tag exceeds {MAX_D_BYTES} bytes")
    if event.kind in kinds.MESSAGES:
        return _thread_fault(event, channel, state)
    rule = _BY_KIND.get(event.kind)
    return None if rule is None else rule(event, channel, state)


def _thread_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    thread = thread_of(event.tags)
    if thread is None:
        return None
    parent = state.store.get(thread.parent)
    if parent is None or parent.event.kind not in kinds.MESSAGES:
        return refuse("invalid: reply parent not found")
    if channel is None or parent.channel != channel.id:
        return refuse("invalid: parent event belongs to a different channel")
    above = thread_of(parent.event.tags)
    actual = thread.parent if above is None else above.root
    if thread.root not in (actual, thread.parent):
        return refuse("invalid: root tag does not match thread ancestry")
    if _depth(parent, state) > state.limits.thread_depth:
        return refuse("invalid: thread is too deep")
    return None


def _depth(stored: Stored | None, state: RelayState) -> int:
    """How many messages stand above a reply to an event, counted to just past the limit."""
    depth = 0
    while stored is not None and depth <= state.limits.thread_depth:
        depth += 1
        thread = thread_of(stored.event.tags)
        stored = None if thread is None else state.store.known(thread.parent)
    return depth


def _profile_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    try:
        data = strict_json.parse(event.content)
    except JsonError:
        data = None
    return None if isinstance(data, dict) else refuse("invalid: profile content must be JSON")


def _reaction_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    if not event.content or len(event.content) > MAX_REACTION_CHARS:
        return refuse(f"invalid: a reaction has 1 to {MAX_REACTION_CHARS} characters")
    known = state.reactions.get(reaction_key(event))
    if known is not None and state.store.get(known) is not None:
        return Answer(False, "duplicate: reaction already exists")
    return None


def _deletion_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    targets = list(values(event.tags, "e"))
    if not targets:
        return refuse("invalid: deletion must reference a target event via e tag")
    here = None if channel is None else channel.id
    for target in targets:
        stored = state.store.get(target)
        if stored is None:
            continue
        if stored.event.pubkey != event.pubkey:
            return refuse("invalid: only the author may delete an event")
        if stored.channel != here:
            return refuse("invalid: deletion targets belong to different channels")
    return None


def _removal_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    """9005: exactly one target, deleted by its author or a leader of the channel."""
    targets = list(values(event.tags, "e"))
    if len(targets) != 1:
        return refuse("invalid: exactly one e tag must name the target event")
    stored = state.store.get(targets[0])
    if stored is None or channel is None or stored.channel != channel.id:
        return refuse("invalid: target event not found")
    if stored.event.pubkey == state.keypair.pubkey:
        return refuse("invalid: relay events cannot be deleted")
    if stored.event.pubkey != event.pubkey and not channel.is_leader(event.pubkey):
        return refuse("invalid: actor not authorized to delete this event")
    return None


def _edit_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    """40003: one target in the same channel, edited by its author alone."""
    targets = list(values(event.tags, "e"))
    if len(targets) != 1:
        return refuse("invalid: exactly one e tag must name the edited event")
    stored = state.store.get(targets[0])
    if stored is None or channel is None or stored.channel != channel.id:
        return refuse("invalid: edit target not found")
    if stored.event.pubkey != event.pubkey:
        return refuse("invalid: only the author may edit a message")
    return None


def _engram_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    fault = engram.envelope_fault(event.tags, event.content)
    return None if fault is None else refuse(f"invalid: {fault}")


def _policy_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    if add_policy(event.content) is None:
        return refuse("invalid: channel_add_policy must be anyone, owner_only or nobody")
    return None


def _metric_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    """44200: from an agent, about itself, to the owner that the relay knows of."""
    owner = state.owners.get(event.pubkey)
    if owner is None:
        return refuse("restricted: no registered owner for this agent", 403)
    if list(values(event.tags, "p")) != [owner]:
        return refuse("invalid: exactly one p tag must name the agent's owner")
    if list(values(event.tags, "agent")) != [event.pubkey]:
        return refuse("invalid: agent tag must equal the event author")
    if first(event.tags, "h") is not None:
        return refuse("invalid: turn metrics carry no h tag")
    return None


def _observer_fault(event: Event, channel: Channel | None, state: RelayState) -> Answer | None:
    """24200: between an agent and its owner, and fresh."""
    target, agent = first(event.tags, "p") or "", first(event.tags, "agent") or ""
    if abs(event.created_at - state.clock()) > 300:
        return refuse("invalid: observer frame timestamp too far from server time")
    ends = {event.pubkey, target}
    if not is_hex64(target) or agent not in ends or ends != {agent, state.owners.get(agent)}:
        return refuse("restricted: observer frames are between an agent and its owner", 403)
    return None


def reaction_key(event: Event) -> tuple[str, str, str]:
    """What makes two reactions the same: author, target, content."""
    targets = list(values(event.tags, "e"))
    return (event.pubkey, targets[-1] if targets else "", event.content)


_BY_KIND = {
    kinds.PROFILE: _profile_fault,
    kinds.REACTION: _reaction_fault,
    kinds.DELETION: _deletion_fault,
    kinds.DELETE_EVENT: _removal_fault,
    kinds.MESSAGE_EDIT: _edit_fault,
    kinds.ENGRAM: _engram_fault,
    kinds.AGENT_PROFILE: _policy_fault,
    kinds.TURN_METRIC: _metric_fault,
    kinds.OBSERVER: _observer_fault,
}
