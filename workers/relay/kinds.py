"""The kinds that the relay knows, and what sets each group of them apart (Buzz registry)."""

from __future__ import annotations

PROFILE = 0
DELETION = 5
REACTION = 7
MESSAGE = 9
GIFT_WRAP = 1059
ADD_MEMBER = 9000
REMOVE_MEMBER = 9001
EDIT_GROUP = 9002
DELETE_EVENT = 9005
CREATE_GROUP = 9007
DELETE_GROUP = 9008
JOIN = 9021
LEAVE = 9022
AGENT_PROFILE = 10100
PRESENCE = 20001
TYPING = 20002
AUTH = 22242
OBSERVER = 24200
ENGRAM = 30174
GROUP_METADATA = 39000
GROUP_ADMINS = 39001
GROUP_MEMBERS = 39002
MESSAGE_EDIT = 40003
SYSTEM_MESSAGE = 40099
PRESENCE_SNAPSHOT = 40902
DM_RECORD = 41001
DM_OPEN = 41010
MEMBER_ADDED = 44100
MEMBER_REMOVED = 44101
TURN_METRIC = 44200

MESSAGES = frozenset({9, 40002, 40008, 45001, 45003})
"""What a person reads; replies among them are threaded."""

NOTIFICATIONS = frozenset({MEMBER_ADDED, MEMBER_REMOVED})

RELAY_SIGNED = NOTIFICATIONS | {
    GROUP_METADATA,
    GROUP_ADMINS,
    GROUP_MEMBERS,
    SYSTEM_MESSAGE,
    DM_RECORD,
}
"""What this relay makes and stores itself."""

RELAY_ONLY = frozenset({13534, 30622, 39005, 39006, 40901, 40902})

GLOBAL = frozenset(
    {PROFILE, GIFT_WRAP, AGENT_PROFILE, PRESENCE, OBSERVER, ENGRAM, TURN_METRIC}
    | {30175, 30176, 30177, 30178, 30179, 30300, 30315, 30350}
)
"""Stored (or passed on) without a channel, whatever their tags say."""

NEED_CHANNEL = frozenset(
    {MESSAGE, *range(40002, 40009), 40100, 45001, 45002, 45003}
    | {ADD_MEMBER, REMOVE_MEMBER, EDIT_GROUP, DELETE_EVENT, DELETE_GROUP, JOIN, LEAVE}
)
"""Must carry an ``h`` tag."""

OWN_AUTHORISATION = frozenset({EDIT_GROUP, CREATE_GROUP, DELETE_GROUP, JOIN})
"""Not subject to the rule that only members write: each has a rule of its own.

Buzz also counts 9005 and 40003 here. Their own rules would let an author who was removed from a
private channel go on changing it; here they need membership as well.
"""

WHILE_ARCHIVED = frozenset({EDIT_GROUP, DELETE_GROUP})
"""Allowed in an archived channel, else it could never be reopened or deleted."""

KNOWN = (
    GLOBAL
    | NEED_CHANNEL
    | frozenset({DELETION, REACTION, CREATE_GROUP, TYPING, DM_OPEN, 46010, 48106})
)
"""What clients may publish."""

P_GATED = frozenset({1059, 24200, 30180, 30622, 44100, 44101, 44200})
"""Read only by those whom they name."""

P_GATED_WHATEVER_IDS = frozenset({30180, 30622, 44200})

AUTHOR_ONLY = frozenset({30179, 30300, 30350})

SHARED_ONLY = frozenset({30175, 30178})
"""Read by others only when tagged ``["shared","true"]``."""

SEARCHED = frozenset({0, 9, 40002, 45001, 45003})


def is_ephemeral(kind: int) -> bool:
    """Passed on and never stored (NIP-01)."""
    return 20000 <= kind < 30000


def is_replaceable(kind: int) -> bool:
    """One per author, and channel (NIP-01)."""
    return kind in (0, 3) or 10000 <= kind < 20000


def is_addressable(kind: int) -> bool:
    """One per author and ``d`` tag (NIP-01)."""
    return 30000 <= kind < 40000
