"""A store that remembers what never changes: locks, commits, tries' records and evidence."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from workers.storage import Store

_NEVER_CHANGES = re.compile(
    r"sweeps/[^/]+/(?:lock-[0-9]+|attempts/.+/result|tries/.+/(?:try|evidence))\.json"
)

CACHE_BYTES = 256 * 1024 * 1024


class CachingStore:
    """Reads as its store does, immutable objects once; writes are the store's own.

    Safe to be used by several threads.
    """

    def __init__(self, store: Store, cache_bytes: int = CACHE_BYTES) -> None:
        """Holds up to ``cache_bytes`` bytes; what was used longest ago goes first."""
        self.url = store.url
        self._store = store
        self._most = cache_bytes
        self._held = 0
        self._objects: OrderedDict[str, bytes] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: str) -> bytes:
        """An object's bytes; see ``Store``."""
        with self._turn:
            if key in self._objects:
                self._objects.move_to_end(key)
                return self._objects[key]
        data = self._store.get(key)
        if _NEVER_CHANGES.fullmatch(key) and len(data) < self._most // 8:
            self._keep(key, data)
        return data

    def create(self, key: str, data: bytes) -> bool:
        """See ``Store``."""
        return self._store.create(key, data)

    def put(self, key: str, data: bytes) -> None:
        """See ``Store``."""
        self._store.put(key, data)

    def put_file(self, key: str, path: Path) -> None:
        """See ``Store``."""
        self._store.put_file(key, path)

    def exists(self, key: str) -> bool:
        """See ``Store``."""
        return self._store.exists(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """See ``Store``."""
        return self._store.keys(prefix)

    def children(self, folder: str) -> list[str]:
        """See ``Store``."""
        return self._store.children(folder)

    def delete(self, key: str) -> None:
        """See ``Store``."""
        self._store.delete(key)

    def clock(self) -> float | None:
        """See ``Store``."""
        return self._store.clock()

    def _keep(self, key: str, data: bytes) -> None:
        with self._turn:
            if key in self._objects:
                return
            self._objects[key] = data
            self._held += len(data)
            while self._held > self._most:
                _, gone = self._objects.popitem(last=False)
                self._held -= len(gone)
