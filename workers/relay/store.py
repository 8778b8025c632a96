"""The relay's events: append-only, in order of acceptance, unique by id.

Of replaceable events one version is current. Nothing leaves the timeline: what is deleted or
superseded only leaves the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from workers.nostr.event import Event
from workers.nostr.filters import Filter
from workers.nostr.tags import first, mentioned, values
from workers.relay.kinds import is_addressable, is_replaceable

Address = tuple[int, str, str]
"""Kind, author, and channel or ``d`` tag: what one current version belongs to."""

Index = dict[Any, dict[int, "Stored"]]
"""Visible events by position, by what they are looked up with."""

_EVENT_OVERHEAD_BYTES = 600


class Stored:
    """An event and where it stands."""

    __slots__ = ("channel", "event", "is_visible", "mentions", "position")

    def __init__(self, event: Event, channel: str | None, position: int) -> None:
        self.event = event
        self.channel = channel
        """Where it was stored; None is global."""
        self.position = position
        """Order of acceptance, from 0; -1 for what is only passed on."""
        self.mentions = mentioned(event.tags)
        self.is_visible = True
        """False once deleted or superseded."""


def passed_on(event: Event, channel: str | None) -> Stored:
    """An ephemeral event on its way to subscribers."""
    return Stored(event, channel, -1)


class EventStore:
    """All events of one relay."""

    def __init__(self) -> None:
        self.bytes = 0
        """Text held, roughly."""
        self.listener: Callable[[Event], None] | None = None
        """Hears of every event as it is stored."""
        self._timeline: list[Stored] = []
        self._by_id: dict[str, Stored] = {}
        self._current: dict[Address, Stored] = {}
        self._by_kind: Index = {}
        self._by_author: Index = {}
        self._by_mention: Index = {}
        self._by_channel: Index = {}

    def __len__(self) -> int:
        return len(self._timeline)

    def timeline(self) -> list[Event]:
        """Every event ever stored, in order of acceptance."""
        return [stored.event for stored in self._timeline]

    def timeline_from(self, position: int) -> list[Event]:
        """The events stored since there were ``position`` of them."""
        return [stored.event for stored in self._timeline[position:]]

    def known(self, event_id: str) -> Stored | None:
        """The event of an id, visible or not."""
        return self._by_id.get(event_id)

    def get(self, event_id: str) -> Stored | None:
        """The event of an id, if it is neither deleted nor superseded."""
        stored = self._by_id.get(event_id)
        return stored if stored is not None and stored.is_visible else None

    def current(self, kind: int, author: str, place: str) -> Stored | None:
        """The current version at an address."""
        return self._current.get((kind, author, place))

    def loses(self, event: Event, channel: str | None) -> bool:
        """Whether a replaceable event comes too late: an equal or newer version is stored.

        The newer ``created_at`` wins, at equal times the lower id (NIP-01).
        """
        address = address_of(event, channel)
        current = None if address is None else self._current.get(address)
        return current is not None and (-current.event.created_at, current.event.id) < (
            -event.created_at,
            event.id,
        )

    def append(self, event: Event, channel: str | None) -> Stored:
        """Stores an event whose id is new and which does not lose; supersedes what it replaces."""
        stored = Stored(event, channel, len(self._timeline))
        address = address_of(event, channel)
        if address is not None:
            replaced = self._current.get(address)
            if replaced is not None:
                self.hide(replaced)
            self._current[address] = stored
        self._timeline.append(stored)
        self._by_id[event.id] = stored
        self.bytes += size_of(event)
        for index, key in self._places(stored):
            index.setdefault(key, {})[stored.position] = stored
        if self.listener is not None:
            self.listener(event)
        return stored

    def hide(self, stored: Stored) -> None:
        """Takes an event out of every answer; the timeline keeps it."""
        if not stored.is_visible:
            return
        stored.is_visible = False
        for index, key in self._places(stored):
            index[key].pop(stored.position, None)
        address = address_of(stored.event, stored.channel)
        if address is not None and self._current.get(address) is stored:
            del self._current[address]

    def in_channel(self, channel: str) -> list[Stored]:
        """The visible events of a channel, in order of acceptance."""
        return list(self._by_channel.get(channel, {}).values())

    def candidates(self, wanted: Filter) -> Iterable[Stored]:
        """Visible events among which are all that a filter matches: its most telling index."""
        if wanted.ids is not None:
            return [found for found in map(self.get, wanted.ids) if found is not None]
        choices: list[list[dict[int, Stored]]] = []
        if wanted.kinds is not None:
            choices.append(_hits(self._by_kind, wanted.kinds))
        if wanted.authors is not None:
            choices.append(_hits(self._by_author, wanted.authors))
        if "p" in wanted.tags:
            choices.append(_hits(self._by_mention, wanted.tags["p"]))
        if "h" in wanted.tags:
            choices.append(_hits(self._by_channel, wanted.tags["h"]))
        if not choices:
            return [stored for stored in self._timeline if stored.is_visible]
        best = min(choices, key=lambda hits: sum(map(len, hits)))
        # An event of two mentions or channels stands in two hits.
        return {position: stored for hit in best for position, stored in hit.items()}.values()

    def _places(self, stored: Stored) -> Iterator[tuple[Index, Any]]:
        """The index entries that an event has."""
        event = stored.event
        yield self._by_kind, event.kind
        yield self._by_author, event.pubkey
        for key in stored.mentions:
            yield self._by_mention, key
        for channel in {*values(event.tags, "h"), *filter(None, (stored.channel,))}:
            yield self._by_channel, channel


def address_of(event: Event, channel: str | None) -> Address | None:
    """What an event is a version of, or None for a regular one."""
    if is_replaceable(event.kind):
        return (event.kind, event.pubkey, channel or "")
    if is_addressable(event.kind):
        return (event.kind, event.pubkey, first(event.tags, "d") or "")
    return None


def size_of(event: Event) -> int:
    """About how many bytes an event takes to hold."""
    return (
        _EVENT_OVERHEAD_BYTES
        + len(event.content) * (1 if event.content.isascii() else 4)
        + sum(60 + len(part) for tag in event.tags for part in tag)
    )


def _hits(index: Index, keys: Iterable[Any]) -> list[dict[int, Stored]]:
    return [index[key] for key in keys if key in index]
