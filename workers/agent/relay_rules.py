"""What an agent subscribes to, and what it does about what the relay says. No I/O.

Names, kinds and reactions are those of buzz-acp.
"""

from __future__ import annotations

import enum
from collections import OrderedDict

MEMBERSHIP = "membership-notif"
MEMBERSHIP_KINDS = (44100, 44101)
CHANNEL_KINDS = (9, 46010, 40007)
LOOK_BACK_S = 5
"""Seconds that a subscription reaches back before its start or its last event."""
REMEMBERED = 12_000


def channel_subscription(channel: str) -> str:
    """The id of a channel's subscription."""
    return f"ch-{channel}"


class Reaction(enum.Enum):
    """What a ``CLOSED`` asks for."""

    FORGET = "forget"
    BACK_OFF = "back off"
    RECONNECT = "reconnect"
    RESUBSCRIBE = "resubscribe"


def reaction(reason: str) -> Reaction:
    """What to do about a subscription that the relay closed for ``reason``."""
    if reason.startswith(
        ("restricted: not a channel member", "restricted: channel access revoked")
    ):
        return Reaction.FORGET
    if reason.startswith("rate-limited:"):
        return Reaction.BACK_OFF
    if "auth" in reason or reason.startswith("restricted"):
        return Reaction.RECONNECT
    return Reaction.RESUBSCRIBE


class Seen:
    """The ids that were seen last; the oldest is forgotten when it is full."""

    def __init__(self, capacity: int = REMEMBERED) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._capacity = capacity

    def is_new(self, event_id: str) -> bool:
        """Whether this id is new; from now on it is not."""
        if event_id in self._ids:
            return False
        self._ids[event_id] = None
        if len(self._ids) > self._capacity:
            self._ids.popitem(last=False)
        return True
