"""Filters (NIP-01) as Buzz matches them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from workers.nostr.errors import FilterError
from workers.nostr.tags import Tags, is_hex64, mentioned, values

_TAG_KEY = re.compile(r"#[A-Za-z]")
_MAX_NUMBER = 2**63 - 1
MAX_SEARCH_CHARS = 1024
"""Bounds the work of one search (ours)."""


class Matchable(Protocol):
    """What a filter looks at."""

    @property
    def id(self) -> str:
        """64 hex digits."""
        ...

    @property
    def pubkey(self) -> str:
        """The author."""
        ...

    @property
    def created_at(self) -> int:
        """Unix seconds."""
        ...

    @property
    def kind(self) -> int:
        """The kind."""
        ...

    @property
    def tags(self) -> Tags:
        """As signed."""
        ...


@dataclass(frozen=True)
class Filter:
    """One filter. A list that is absent is None and asks nothing; an empty one matches nothing."""

    ids: frozenset[str] | None = None
    authors: frozenset[str] | None = None
    kinds: frozenset[int] | None = None
    since: int | None = None
    """Inclusive."""
    until: int | None = None
    """Inclusive."""
    limit: int | None = None
    search: str | None = None
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By tag name, without the ``#``."""

    @classmethod
    def from_dict(cls, data: Any) -> Filter:
        """Reads a decoded JSON object; keys that are unknown here are left to the caller.

        Raises:
            FilterError: it is no object, or a field has the wrong form; the message names it.
        """
        if not isinstance(data, dict):
            raise FilterError("a filter is a JSON object")
        return cls(
            ids=_keys(data, "ids"),
            authors=_keys(data, "authors"),
            kinds=_kinds(data),
            since=_number(data, "since"),
            until=_number(data, "until"),
            limit=_number(data, "limit"),
            search=_search(data),
            tags={key[1:]: _texts(data, key) for key in data if _TAG_KEY.fullmatch(key)},
        )

    def channels(self) -> frozenset[str] | None:
        """The channels that ``#h`` names, or None where it does not."""
        return self.tags.get("h")

    def matches(self, event: Matchable, channel: str | None = None) -> bool:
        """Whether an event fits, ``limit`` and ``search`` aside.

        Args:
            event: the event.
            channel: where it was stored; ``#h`` falls back to it when the event has no ``h``.
        """
        return (
            (self.kinds is None or event.kind in self.kinds)
            and (self.since is None or event.created_at >= self.since)
            and (self.until is None or event.created_at <= self.until)
            and (self.authors is None or event.pubkey in self.authors)
            and (self.ids is None or event.id in self.ids)
            and all(
                not wanted.isdisjoint(_found(event.tags, name, channel))
                for name, wanted in self.tags.items()
            )
        )


def _found(tags: Tags, name: str, channel: str | None) -> frozenset[str]:
    """The values of an event that ``#<name>`` is compared with."""
    if name == "p":
        return mentioned(tags)
    found = frozenset(values(tags, name))
    if name == "h" and not found and channel is not None:
        return frozenset((channel,))
    return found


def _list(data: dict[str, Any], name: str) -> list[Any]:
    value = data[name]
    if not isinstance(value, list):
        raise FilterError(f"{name} must be a list")
    return value


def _texts(data: dict[str, Any], name: str) -> frozenset[str]:
    found = _list(data, name)
    if not all(isinstance(value, str) for value in found):
        raise FilterError(f"{name} must be a list of texts")
    return frozenset(value.lower() for value in found) if name == "#p" else frozenset(found)


def _keys(data: dict[str, Any], name: str) -> frozenset[str] | None:
    if data.get(name) is None:
        return None
    found = _texts(data, name)
    if not all(is_hex64(value) for value in found):
        raise FilterError(f"{name} must be a list of 64 lower-case hex digits each")
    return found


def _kinds(data: dict[str, Any]) -> frozenset[int] | None:
    if data.get("kinds") is None:
        return None
    found = _list(data, "kinds")
    if not all(type(kind) is int and 0 <= kind <= 65535 for kind in found):
        raise FilterError("kinds must be a list of whole numbers from 0 to 65535")
    return frozenset(found)


def _number(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= _MAX_NUMBER:
        raise FilterError(f"{name} must be a whole number of 0 or more")
    return value


def _search(data: dict[str, Any]) -> str | None:
    value = data.get("search")
    if value is not None and not isinstance(value, str):
        raise FilterError("search must be a text")
    if value is not None and len(value) > MAX_SEARCH_CHARS:
        raise FilterError(f"search has at most {MAX_SEARCH_CHARS} characters")
    return value
