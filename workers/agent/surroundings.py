"""Gathers what a turn's prompt is written from: channels, profiles, the thread so far.

A query that fails costs the turn nothing but that knowledge, as in buzz-acp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from workers.agent import journal
from workers.agent.bridge import Bridge, BridgeError
from workers.agent.prompt import Channel, Profile, Surroundings
from workers.nostr.event import Event
from workers.nostr.tags import first, mentioned, thread_of, values

PROFILE_KIND = 0
METADATA_KIND = 39000
MEMBERS_KIND = 39002
THREAD_KINDS = (9, 40002)
THREAD_MESSAGES = 12


def discover(bridge: Bridge, me: str) -> list[str]:
    """The channels that ``me`` is a member of, less the archived ones.

    Raises:
        BridgeError: the relay does not tell.
    """
    rosters = bridge.query({"kinds": [MEMBERS_KIND], "#p": [me]})
    ids = [channel for event in rosters for channel in values(event.tags, "d")]
    found = bridge.query({"kinds": [METADATA_KIND], "#d": ids}) if ids else []
    archived = {first(e.tags, "d") for e in found if first(e.tags, "archived") == "true"}
    return [channel for channel in ids if channel not in archived]


def _channel(channel: str, metadata: Event) -> Channel:
    return Channel(channel, first(metadata.tags, "name") or "", first(metadata.tags, "about") or "")


def describe_channel(bridge: Bridge, channel: str) -> Channel:
    """One channel's metadata; bare where the relay has or gives none."""
    try:
        found = bridge.query({"kinds": [METADATA_KIND], "#d": [channel], "limit": 1})
    except BridgeError as error:
        journal.write(f"no metadata of channel {channel}: {error}")
        return Channel(channel)
    return _channel(channel, found[0]) if found else Channel(channel)


def gather(bridge: Bridge, channel: Channel, events: Sequence[Event]) -> Surroundings:
    """What is to be known around a batch, whose last event decides the thread."""
    thread = _thread(bridge, channel.id, events)
    return Surroundings(channel, _profiles(bridge, (*events, *thread)), thread)


def more_profiles(bridge: Bridge, around: Surroundings, events: Sequence[Event]) -> Surroundings:
    """The same surroundings, knowing those too who are involved in further events."""
    unknown = [event for event in events if not _involved([event]) <= set(around.profiles)]
    if not unknown:
        return around
    profiles = {**around.profiles, **_profiles(bridge, unknown)}
    return Surroundings(around.channel, profiles, around.thread)


def _involved(events: Iterable[Event]) -> set[str]:
    return {key for event in events for key in (event.pubkey, *mentioned(event.tags))}


def _profiles(bridge: Bridge, events: Iterable[Event]) -> dict[str, Profile]:
    keys = sorted(_involved(events))
    try:
        found = bridge.query({"kinds": [PROFILE_KIND], "authors": keys})
    except BridgeError as error:
        journal.write(f"no profiles: {error}")
        return {}
    return {event.pubkey: read_profile(event) for event in found}


def read_profile(event: Event) -> Profile:
    """Name and kind of whoever published a profile; an attested one is an agent's."""
    content = profile_content(event)
    name = content.get("display_name", content.get("name"))
    is_agent = any(tag[0] == "auth" and len(tag) == 4 for tag in event.tags)
    return Profile(name if isinstance(name, str) else "", is_agent)


def profile_content(event: Event) -> dict[str, Any]:
    """A profile's JSON object; empty where it has none."""
    try:
        content = json.loads(event.content)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _thread(bridge: Bridge, channel: str, events: Sequence[Event]) -> tuple[Event, ...]:
    """The last messages of the trigger's thread and its root, oldest first."""
    thread = thread_of(events[-1].tags)
    if thread is None:
        return ()
    replies = {
        "kinds": THREAD_KINDS,
        "#e": [thread.root],
        "#h": [channel],
        "limit": THREAD_MESSAGES + 1,
    }
    try:
        found = bridge.query({"ids": [thread.root]}, replies)
    except BridgeError as error:
        journal.write(f"no thread context: {error}")
        return ()
    shown = {event.id for event in events}
    unique = {event.id: event for event in found if event.id not in shown}
    return tuple(sorted(unique.values(), key=lambda event: event.created_at))[-THREAD_MESSAGES:]
