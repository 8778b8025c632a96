"""Evidence, schema version 1: what a verifier sees of a trial (Buzz evidence snapshot)."""

from __future__ import annotations

from typing import Literal

from workers.contract.base import Strict

MESSAGE_KINDS: tuple[int, ...] = (9, 40002, 40008, 45001, 45003)
"""The kinds that count as messages."""


class TrialRef(Strict):
    """Which trial this is."""

    run_id: str
    """The sweep's id."""
    trial_id: str
    """``<attempt>/<try>``."""
    channel_id: str


class Identity(Strict):
    """The user or an agent."""

    role: Literal["user", "orchestrator", "worker"]
    pubkey: str


class DirectoryRow(Strict):
    """An identity of the fixture's directory."""

    identity_id: str
    name: str
    role: Literal["user", "bot"]
    pubkey: str
    about: str


class ScriptedEvent(Strict):
    """A scripted message as it was posted."""

    label: str
    event_id: str
    actor: str
    reply_to_event_id: str | None


class ChannelMember(Strict):
    """A row of an observed channel's roster."""

    pubkey: str
    role: str


class ObservedChannel(Strict):
    """A channel that the fixture asked to observe, as the orchestrator sees it."""

    channel_id: str
    name: str
    channel_type: str
    visibility: str
    ttl_seconds: int | None
    archived: bool
    members: tuple[ChannelMember, ...]


class Message(Strict):
    """A message of the trial's channel, tags as signed less ``auth``."""

    id: str
    kind: int
    created_at: int
    pubkey: str
    author: str
    author_role: str
    content: str
    tags: tuple[tuple[str, ...], ...]
    channel_id: str | None
    reply_to_event_id: str | None
    mentioned_pubkeys: tuple[str, ...]


class Evidence(Strict):
    """The frozen record of what happened in the channel."""

    schema_version: Literal[1] = 1
    trial: TrialRef
    task_event_id: str | None
    completion_message_id: str | None
    task_name: str
    identities: dict[str, Identity]
    directory: tuple[DirectoryRow, ...]
    scripted_events: tuple[ScriptedEvent, ...]
    observed_channels: tuple[ObservedChannel, ...]
    message_count: int
    truncated: bool
    messages: tuple[Message, ...]


def reply_target(tags: tuple[tuple[str, ...], ...]) -> str | None:
    """The first ``e`` tag marked ``reply`` (NIP-10 marker in the fourth element)."""
    for tag in tags:
        if len(tag) >= 4 and tag[0] == "e" and tag[3] == "reply":
            return tag[1]
    return None


def mentioned(tags: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The values of all ``p`` tags, in order."""
    return tuple(tag[1] for tag in tags if len(tag) >= 2 and tag[0] == "p")


def channel_of(tags: tuple[tuple[str, ...], ...]) -> str | None:
    """The value of the first ``h`` tag."""
    return next((tag[1] for tag in tags if len(tag) >= 2 and tag[0] == "h"), None)
