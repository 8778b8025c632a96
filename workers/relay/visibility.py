"""Who may see what: gates that a request must pass, and the rule for each single event."""

from __future__ import annotations

from collections.abc import Sequence

from workers.nostr.filters import Filter
from workers.relay import kinds
from workers.relay.groups import Groups
from workers.relay.store import Stored

P_GATED_WS = "restricted: p-gated events require #p matching your pubkey"
P_GATED_HTTP = "restricted: p-gated kinds require #p tag matching your pubkey"
ENGRAM = "restricted: agent-engram reads require authors=[self] or #p=[self]"
AUTHOR_ONLY = "restricted: author-only kinds require authors=[self]"


def scope_of(filters: Sequence[Filter]) -> frozenset[str] | None:
    """The channels that a request asks for, or None where it is global.

    One filter without ``#h`` makes the whole request global.
    """
    asked = [wanted.channels() for wanted in filters]
    if any(channels is None for channels in asked):
        return None
    return frozenset().union(*(channels for channels in asked if channels is not None))


def gate_fault(filters: Sequence[Filter], caller: str, p_gated_reason: str) -> str | None:
    """Why a request may not be run at all, or None."""
    scope = scope_of(filters)
    if scope is not None and len(scope) == 1:
        return None
    for wanted in filters:
        if not _passes_p_gate(wanted, caller):
            return p_gated_reason
        if not _passes_engram_gate(wanted, caller):
            return ENGRAM
        if wanted.kinds and wanted.kinds <= kinds.AUTHOR_ONLY and not _is_own(wanted, caller):
            return AUTHOR_ONLY
    return None


def may_see(stored: Stored, caller: str, groups: Groups) -> bool:
    """Whether a key may be shown an event, whatever it asked for."""
    event = stored.event
    if stored.channel is not None:
        channel = groups.get(stored.channel)
        return channel is not None and channel.admits(caller)
    if event.pubkey == caller:
        return True
    if event.kind in kinds.P_GATED or event.kind == kinds.ENGRAM:
        return caller in stored.mentions
    if event.kind in kinds.AUTHOR_ONLY:
        return False
    return event.kind not in kinds.SHARED_ONLY or ("shared", "true") in event.tags


def _passes_p_gate(wanted: Filter, caller: str) -> bool:
    if wanted.kinds is not None and wanted.kinds.isdisjoint(kinds.P_GATED):
        return True
    if _names_self(wanted, caller):
        return True
    stubborn = wanted.kinds is not None and not wanted.kinds.isdisjoint(kinds.P_GATED_WHATEVER_IDS)
    return bool(wanted.ids) and not stubborn


def _passes_engram_gate(wanted: Filter, caller: str) -> bool:
    if wanted.kinds is not None and kinds.ENGRAM not in wanted.kinds:
        return True
    return _is_own(wanted, caller) or _names_self(wanted, caller) or bool(wanted.ids)


def _is_own(wanted: Filter, caller: str) -> bool:
    return wanted.authors == frozenset((caller,))


def _names_self(wanted: Filter, caller: str) -> bool:
    return wanted.tags.get("p") == frozenset((caller,))
