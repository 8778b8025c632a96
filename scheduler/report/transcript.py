"""The conversation of a try as a person would read it. Pure.

Messages are content that came out of a container: control characters and direction marks are
written out, so that no message can move the reader's cursor or hide its own text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from workers.contract.evidence import Evidence, Message

MAX_DEPTH = 6
"""Deeper replies are indented no further."""

CHAT_KIND = 9
"""The kind of an ordinary channel message (NIP-29); others are named."""

SHOWN_KEY = 8
"""Hex digits shown of a key that nobody's name belongs to."""


@dataclass(frozen=True)
class Line:
    """One message."""

    time: str
    """``HH:MM:SS``, UTC."""
    depth: int
    """0 for a message at top level, one more than its parent's for a reply."""
    author: str
    role: str
    text: str
    mentions: tuple[str, ...]
    """Names of those it notifies, in the order of its tags."""
    marks: tuple[str, ...]
    """What else it is: ``task``, ``completion``, ``scripted <label>``, ``kind 40002``,
    ``reply to a message that is not here``."""


def transcript(evidence: Evidence) -> tuple[Line, ...]:
    """The messages of the channel in the order of the evidence."""
    names = _names(evidence)
    depths = _depths(evidence.messages)
    labels = {event.event_id: event.label for event in evidence.scripted_events}
    return tuple(
        Line(
            time=_time_of(message.created_at),
            depth=depths[message.id],
            author=visible(message.author or names.get(message.pubkey, message.pubkey[:SHOWN_KEY])),
            role=visible(message.author_role),
            text=visible(message.content),
            mentions=tuple(
                visible(names.get(key, key[:SHOWN_KEY])) for key in message.mentioned_pubkeys
            ),
            marks=_marks(message, evidence, labels, depths),
        )
        for message in evidence.messages
    )


def _time_of(created_at: int) -> str:
    """The time that an agent put on its message, which may be none that a calendar knows."""
    try:
        return datetime.fromtimestamp(created_at, UTC).strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "??:??:??"


def visible(text: str) -> str:
    """Text without anything that a terminal would act upon; line breaks and tabs stay."""
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
        else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def _names(evidence: Evidence) -> Mapping[str, str]:
    """Key to name, the trial's own identities before the directory's."""
    names = {row.pubkey: row.name for row in evidence.directory}
    names.update({identity.pubkey: name for name, identity in evidence.identities.items()})
    return names


def _depths(messages: tuple[Message, ...]) -> Mapping[str, int]:
    """How deep in its thread each message stands.

    A parent that comes later or not at all ends the chain, so that no loop can be followed.
    """
    depths: dict[str, int] = {}
    for message in messages:
        parent = depths.get(message.reply_to_event_id or "")
        depths[message.id] = 0 if parent is None else min(parent + 1, MAX_DEPTH)
    return depths


def _marks(
    message: Message,
    evidence: Evidence,
    labels: Mapping[str, str],
    depths: Mapping[str, int],
) -> tuple[str, ...]:
    marks = []
    if message.id == evidence.task_event_id:
        marks.append("task")
    if message.id == evidence.completion_message_id:
        marks.append("completion")
    if message.id in labels:
        marks.append(f"scripted {visible(labels[message.id])}")
    if message.kind != CHAT_KIND:
        marks.append(f"kind {message.kind}")
    if message.reply_to_event_id is not None and message.reply_to_event_id not in depths:
        marks.append("reply to a message that is not here")
    return tuple(marks)
