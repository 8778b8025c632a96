"""Which running trials somebody wants to follow, as the store says. Blocks.

A wish is renewed every few seconds; one that stands still for half a minute, by this reader's own
clock, is over and is removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from workers.contract.live import WATCHED_AT_MOST, watched_key, watched_prefix
from workers.storage.interface import MissingKeyError, Store

STILL_S = 30.0
LISTED_AT_MOST = 4 * WATCHED_AT_MOST
WISH_BYTES = 1000
_ATTEMPT = re.compile(r"[0-9a-f]{32}")


class Wishes:
    """The wishes of one sweep."""

    def __init__(self, sweep: str, clock: Callable[[], float]) -> None:
        """Knows of none; ``clock`` is monotonic seconds."""
        self._sweep = sweep
        self._clock = clock
        self._seen: dict[str, tuple[bytes, float]] = {}
        """By attempt: what stood there last, and since when."""
        self.attempts: tuple[str, ...] = ()
        """Those that are wished for now, at most ``WATCHED_AT_MOST``."""

    def look(self, store: Store) -> None:
        """Reads the wishes anew; one listing while there are none.

        Raises:
            StoreError: the store refused.
        """
        now = self._clock()
        prefix = watched_prefix(self._sweep)
        keys = list(islice(store.keys(prefix), LISTED_AT_MOST))
        names = [key.removeprefix(prefix).removesuffix(".json") for key in keys]
        seen: dict[str, tuple[bytes, float]] = {}
        for attempt in names:
            if not _ATTEMPT.fullmatch(attempt):
                continue
            try:
                said = store.get(watched_key(self._sweep, attempt))[:WISH_BYTES]
            except MissingKeyError:
                continue
            before = self._seen.get(attempt)
            since = before[1] if before is not None and before[0] == said else now
            if now - since > STILL_S:
                store.delete(watched_key(self._sweep, attempt))
            else:
                seen[attempt] = (said, since)
        self._seen = seen
        # The newest first: one who has left must not keep out one who has come.
        latest = sorted(seen, key=lambda attempt: -seen[attempt][1])
        self.attempts = tuple(latest[:WATCHED_AT_MOST])
