"""A store whose calls are timed for somebody who listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.storage.interface import MissingKeyError, Store

Heard = Callable[[str, str, float], None]
"""Hears operation, ``ok``, ``missing`` or ``error``, and seconds; from any thread."""


class ObservedStore:
    """Does what its store does, and says how long each call took."""

    def __init__(self, store: Store, heard: Heard) -> None:
        self.url = store.url
        self._store = store
        self._heard = heard

    def create(self, key: str, data: bytes) -> bool:
        """See ``Store``."""
        with self._timed("create"):
            return self._store.create(key, data)

    def put(self, key: str, data: bytes) -> None:
        """See ``Store``."""
        with self._timed("put"):
            self._store.put(key, data)

    def put_file(self, key: str, path: Path) -> None:
        """See ``Store``."""
        with self._timed("put_file"):
            self._store.put_file(key, path)

    def get(self, key: str) -> bytes:
        """See ``Store``."""
        with self._timed("get"):
            return self._store.get(key)

    def exists(self, key: str) -> bool:
        """See ``Store``."""
        with self._timed("exists"):
            return self._store.exists(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """See ``Store``; the time is that of the whole listing."""
        with self._timed("keys"):
            found = list(self._store.keys(prefix))
        return iter(found)

    def children(self, folder: str) -> list[str]:
        """See ``Store``."""
        with self._timed("children"):
            return self._store.children(folder)

    def delete(self, key: str) -> None:
        """See ``Store``."""
        with self._timed("delete"):
            self._store.delete(key)

    def clock(self) -> float | None:
        """See ``Store``."""
        with self._timed("clock"):
            return self._store.clock()

    @contextmanager
    def _timed(self, operation: str) -> Iterator[None]:
        started = time.monotonic()
        result = "error"
        try:
            yield
            result = "ok"
        except MissingKeyError:
            result = "missing"
            raise
        finally:
            self._heard(operation, result, time.monotonic() - started)
