"""What the model is told: the system prompt of a session, and the blocks of one turn.

The blocks are those of buzz-acp. A reply destination is given only where a person takes part;
who has published a profile with an owner's attestation counts as an agent. In a benchmark all
have, the user too, so the model finds what to reply to in the event block.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.nostr.event import Event
from workers.nostr.tags import mentioned, thread_of

BASE_PROMPT = Path(__file__).with_name("base_prompt.md")


@dataclass(frozen=True)
class Profile:
    """What is known of a key."""

    name: str
    is_agent: bool


@dataclass(frozen=True)
class Channel:
    """What is known of a channel."""

    id: str
    name: str = ""
    about: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What a turn's blocks are written from, apart from the events themselves."""

    channel: Channel
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """By public key; a key that is missing is unknown."""
    thread: Sequence[Event] = ()
    """Earlier messages of the trigger's thread, oldest first."""


def system_prompt(base: str, persona: str, workdir: str, core_memory: str | None) -> str:
    """The sections of the system prompt, blank lines between them.

    Empty ones are left out; the workspace is only told of together with the base.
    """
    sections = [
        f"[Base]\n{base.strip()}" if base else "",
        f"[Workspace]\nWorking directory: {workdir}" if base else "",
        f"[Agent Instructions]\n{persona.strip()}" if persona.strip() else "",
        f"[Agent Memory — core]\n{core_memory.strip()}" if core_memory else "",
    ]
    return "\n\n".join(section for section in sections if section)


def turn_prompt(events: Sequence[Event], me: str, around: Surroundings) -> str:
    """The user text of a turn: context, thread, then the events; the last one is the trigger."""
    blocks = [_context(events[-1], me, around)]
    if around.thread:
        blocks.append(_thread(around))
    blocks.append(_events(events, around))
    return "\n\n".join(blocks)


def added_prompt(events: Sequence[Event], around: Surroundings) -> str:
    """Events that came while the turn ran. They name no reply destination."""
    head = "While you were working, this arrived. It adds to what you are doing."
    tail = "Go on, and take it into account; what asks for its own answer gets its own."
    return "\n\n".join((head, _events(events, around), tail))


def reply_target(trigger: Event, me: str, profiles: Mapping[str, Profile]) -> str | None:
    """Where replies to a message of a person go: its thread's root, or itself; else None.

    A message is a person's affair if its author is no agent or mentions someone who is none;
    unknown keys count as persons.
    """
    involved = {trigger.pubkey, *mentioned(trigger.tags)} - {me}
    if all(key in profiles and profiles[key].is_agent for key in involved):
        return None
    thread = thread_of(trigger.tags)
    return thread.root if thread is not None else trigger.id


def _context(trigger: Event, me: str, around: Surroundings) -> str:
    thread = thread_of(trigger.tags)
    channel = around.channel
    lines = [
        "[Context]",
        f"Scope: {'thread' if thread is not None else 'channel'}",
        f"Channel: {channel.name or 'unnamed'} (#{channel.id})",
    ]
    if channel.about:
        lines.append(f"Description: {channel.about}")
    if thread is not None:
        lines += [f"Thread root: {thread.root}", f"Parent: {thread.parent}"]
    target = reply_target(trigger, me, around.profiles)
    if target is not None:
        lines.append(f"Send every reply with --reply-to {target}")
    return "\n".join(lines)


def _thread(around: Surroundings) -> str:
    lines = [f"[Thread Context ({len(around.thread)} messages)]"]
    lines += [
        f"{_time(event)} {_name(event.pubkey, around)}: {event.content}" for event in around.thread
    ]
    return "\n".join(lines)


def _events(events: Sequence[Event], around: Surroundings) -> str:
    if len(events) == 1:
        return "[Buzz event: mention]\n" + _block(events[0], around)
    blocks = [f"[Buzz events — {len(events)} events]"]
    for number, event in enumerate(events, start=1):
        blocks.append(f"--- Event {number}: mention ---\n{_block(event, around)}")
    return "\n\n".join(blocks)


def _block(event: Event, around: Surroundings) -> str:
    thread = thread_of(event.tags)
    place = "a top-level message" if thread is None else f"a reply in thread {thread.root}"
    names = [_name(key, around) for key in sorted(mentioned(event.tags))]
    return "\n".join(
        (
            f"Event ID: {event.id}",
            f"Channel: {around.channel.name or 'unnamed'} (#{around.channel.id})",
            f"Kind: {event.kind}",
            f"From: {_name(event.pubkey, around)}",
            f"Time: {_time(event)}",
            f"Content: {event.content}",
            f"Tags: {json.dumps(_public_tags(event), ensure_ascii=False)}",
            f"Parsed: {place}; mentions {', '.join(names) or 'nobody'}",
        )
    )


def _public_tags(event: Event) -> list[list[str]]:
    """The tags less the attestation, which tells the model nothing."""
    return [list(tag) for tag in event.tags if tag[0] != "auth"]


def _name(key: str, around: Surroundings) -> str:
    profile = around.profiles.get(key)
    if profile is None or not profile.name:
        return key
    return f"{profile.name} ({key})"


def _time(event: Event) -> str:
    try:
        moment = datetime.datetime.fromtimestamp(event.created_at, tz=datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(event.created_at)  # NIP-01 allows seconds that no calendar has.
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
