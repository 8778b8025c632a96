"""What a request for stored events gives: standard filters, and Buzz's extensions over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.nostr.errors import FilterError
from workers.nostr.event import Event
from workers.nostr.filters import Filter
from workers.nostr.tags import is_hex64, thread_of
from workers.relay import kinds
from workers.relay.search import parse_search
from workers.relay.state import RelayState
from workers.relay.store import Stored
from workers.relay.visibility import may_see

Order = Callable[[Stored], tuple[int, str]]

FEED_TYPES = ("mentions", "needs_action", "activity", "agent_activity")
_ACTIONS = frozenset({46010, 40007})


@dataclass(frozen=True)
class BridgeFilter:
    """A filter with the extensions that ``POST /query`` knows."""

    filter: Filter
    before_id: str | None = None
    """Cursor: with ``until``, what comes after that event in newest-first order."""
    page: int = 1
    is_prefix: bool = False
    is_top_level: bool = False
    """A channel window: top-level messages only."""
    feed_types: tuple[str, ...] | None = None
    depth_limit: int | None = None
    after: tuple[int, str] | None = None
    """Thread cursor: what comes after that event in oldest-first order."""

    @classmethod
    def from_dict(cls, data: Any) -> BridgeFilter:
        """Reads a decoded JSON object.

        Raises:
            FilterError: it is no filter, or an extension has the wrong form.
        """
        wanted = Filter.from_dict(data)
        before_id = _optional(data, "before_id", str)
        if before_id is not None and (not is_hex64(before_id) or wanted.until is None):
            raise FilterError("before_id must be 64 lower-case hex digits, together with until")
        feed = data.get("feed_types")
        if feed is not None and not (
            isinstance(feed, list) and all(isinstance(x, str) for x in feed)
        ):
            raise FilterError("feed_types must be a list of texts")
        return cls(
            wanted,
            before_id=before_id,
            page=_positive(data, "page") or _positive(data, "search_page") or 1,
            is_prefix=data.get("search_mode") == "prefix",
            is_top_level=data.get("top_level") is True,
            feed_types=None if feed is None else tuple(feed),
            depth_limit=_optional(data, "depth_limit", int),
            after=_thread_cursor(data),
        )

    @property
    def is_thread(self) -> bool:
        """Whether it asks for one thread: a depth limit and exactly one ``#e``."""
        return self.depth_limit is not None and len(self.filter.tags.get("e", ())) == 1

    @property
    def asks_presence(self) -> bool:
        """Whether it asks who is present."""
        return (
            self.filter.kinds is not None
            and len(self.filter.kinds) == 1
            and self.filter.kinds <= {kinds.PRESENCE, kinds.PRESENCE_SNAPSHOT}
            and bool(self.filter.authors)
        )


def newest_first(stored: Stored) -> tuple[int, str]:
    """NIP-01's order: ``created_at`` descending, then id ascending."""
    return (-stored.event.created_at, stored.event.id)


def oldest_first(stored: Stored) -> tuple[int, str]:
    """The order inside a thread."""
    return (stored.event.created_at, stored.event.id)


class Queries:
    """Answers requests for one relay's stored events. Rights are the caller's own."""

    def __init__(self, state: RelayState) -> None:
        self._state = state

    def stored(self, wanted: Filter, caller: str) -> list[Stored]:
        """One standard filter's events, newest first, a page at most."""
        return self._page(self._matching(wanted, caller), newest_first, wanted.limit)

    def count(self, filters: Sequence[Filter], caller: str) -> int:
        """How many events match any of the filters; limits do not count."""
        return len(
            {stored.event.id for wanted in filters for stored in self._matching(wanted, caller)}
        )

    def bridge(self, filters: Sequence[BridgeFilter], caller: str) -> list[Event]:
        """The events of one ``POST /query``: windows, feeds, threads, then the rest.

        Not de-duplicated between filters, as in Buzz.

        Raises:
            FilterError: search and other filters are mixed.
        """
        searches = [wanted for wanted in filters if wanted.filter.search is not None]
        if searches and len(searches) < len(filters):
            raise FilterError("mixed search and non-search filters not supported")
        if searches:
            return [held.event for wanted in searches for held in self.search(wanted, caller)]
        windows = [wanted for wanted in filters if wanted.is_top_level]
        feeds = [w for w in filters if w.feed_types is not None and w not in windows]
        threads = [w for w in filters if w.is_thread and w not in windows and w not in feeds]
        general = [w for w in filters if w not in windows and w not in feeds and w not in threads]
        found = [held for wanted in windows for held in self._window(wanted, caller)]
        found += [held for wanted in feeds for held in self._feed(wanted, caller)]
        found += [held for wanted in threads for held in self._thread(wanted, caller)]
        found += [held for wanted in general for held in self._general(wanted, caller)]
        return [held.event for held in found]

    def search(self, wanted: BridgeFilter, caller: str) -> list[Stored]:
        """The events whose text fits, best first, then newest."""
        query = parse_search(wanted.filter.search or "", is_prefix=wanted.is_prefix)
        ranked = [
            (-query.rank(stored.event.content), *newest_first(stored), stored)
            for stored in self._matching(wanted.filter, caller)
            if stored.event.kind in kinds.SEARCHED
        ]
        hits = sorted((row for row in ranked if row[0]), key=lambda row: row[:3])
        limit = _limit(wanted.filter.limit, 100, 500)
        start = (wanted.page - 1) * limit
        return [row[3] for row in hits[start : start + limit]]

    def _general(self, wanted: BridgeFilter, caller: str) -> list[Stored]:
        found = self._matching(wanted.filter, caller)
        if wanted.before_id is not None:
            found = self._before(wanted, found)
        return self._page(found, newest_first, wanted.filter.limit, page=wanted.page)

    def _window(self, wanted: BridgeFilter, caller: str) -> list[Stored]:
        found: Iterable[Stored] = (
            stored
            for stored in self._matching(wanted.filter, caller)
            if stored.event.kind not in kinds.MESSAGES or thread_of(stored.event.tags) is None
        )
        if wanted.before_id is not None:
            found = self._before(wanted, found)
        return self._page(found, newest_first, wanted.filter.limit, 50, 200, wanted.page)

    def _thread(self, wanted: BridgeFilter, caller: str) -> list[Stored]:
        (root,) = wanted.filter.tags["e"]
        found: Iterable[Stored] = (
            stored
            for stored in self._matching(wanted.filter, caller)
            if self._depth_below(stored, root) <= (wanted.depth_limit or 0)
        )
        if wanted.after is not None:
            after = wanted.after
            found = (stored for stored in found if oldest_first(stored) > after)
        return self._page(found, oldest_first, wanted.filter.limit, 100, 500)

    def _feed(self, wanted: BridgeFilter, caller: str) -> list[Stored]:
        found: dict[str, Stored] = {}
        for feed_type in wanted.feed_types or ():
            hits = (
                stored
                for stored in self._matching(wanted.filter, caller, without=("p",))
                if self._is_in_feed(stored, feed_type, caller)
            )
            for stored in self._page(hits, newest_first, wanted.filter.limit, 20, 100):
                found.setdefault(stored.event.id, stored)
        return list(found.values())

    def _is_in_feed(self, stored: Stored, feed_type: str, caller: str) -> bool:
        event = stored.event
        if feed_type == "needs_action":
            return event.kind in _ACTIONS and caller in stored.mentions
        if event.kind not in kinds.MESSAGES or event.pubkey == caller:
            return False
        if feed_type == "mentions":
            return caller in stored.mentions
        if feed_type == "agent_activity":
            return event.pubkey in self._state.owners
        return feed_type == "activity"

    def _matching(
        self, wanted: Filter, caller: str, *, without: Sequence[str] = ()
    ) -> Iterable[Stored]:
        """What fits and may be seen. Channels that the caller may not read give nothing."""
        if without:
            tags = {name: found for name, found in wanted.tags.items() if name not in without}
            wanted = Filter(
                wanted.ids, wanted.authors, wanted.kinds, wanted.since, wanted.until, tags=tags
            )
        readable = self._state.groups.readable(caller)
        asked = wanted.channels()
        if asked is not None and asked.isdisjoint(readable):
            return []
        return [
            stored
            for stored in self._state.store.candidates(wanted)
            if wanted.matches(stored.event, stored.channel)
            and (stored.channel is None or stored.channel in readable)
            and may_see(stored, caller, self._state.groups)
        ]

    def _before(self, wanted: BridgeFilter, found: Iterable[Stored]) -> Iterable[Stored]:
        cursor = (-(wanted.filter.until or 0), wanted.before_id or "")
        return (stored for stored in found if newest_first(stored) > cursor)

    def _page(
        self,
        found: Iterable[Stored],
        order: Order,
        limit: int | None,
        default: int | None = None,
        cap: int | None = None,
        page: int = 1,
    ) -> list[Stored]:
        whole = self._state.limits.page
        size = _limit(limit, default or whole, cap or whole)
        return sorted(found, key=order)[(page - 1) * size : page * size]

    def _depth_below(self, stored: Stored, root: str) -> int:
        """How many replies lie between an event and the root, itself included."""
        depth, above = 0, stored
        while above.event.id != root and depth <= self._state.limits.thread_depth:
            depth += 1
            thread = thread_of(above.event.tags)
            parent = None if thread is None else self._state.store.known(thread.parent)
            if parent is None:
                break
            above = parent
        return depth


def _limit(asked: int | None, default: int, cap: int) -> int:
    return default if asked is None else min(asked, cap)


def _optional(data: dict[str, Any], name: str, kind: type) -> Any:
    value = data.get(name)
    if value is not None and type(value) is not kind:
        raise FilterError(f"{name} has the wrong type")
    return value


def _positive(data: dict[str, Any], name: str) -> int | None:
    value: int | None = _optional(data, name, int)
    if value is not None and not 1 <= value <= 2**31:
        raise FilterError(f"{name} must be 1 or more")
    return value


def _thread_cursor(data: dict[str, Any]) -> tuple[int, str] | None:
    moment: int | None = _optional(data, "thread_cursor", int)
    event_id: str | None = _optional(data, "thread_cursor_id", str)
    return None if moment is None else (moment, event_id or "")
