"""Stores that refuse or hang on request; our own interface only."""

from __future__ import annotations

import threading
from pathlib import Path

from workers.storage import Store, StoreError, open_store


def file_store(folder: Path) -> Store:
    """A store in a folder."""
    return open_store(f"file://{folder / 'store'}")


class Moody:
    """A store in front of another one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refuses = False
        self.free = threading.Event()
        """Calls hang while it is not set."""
        self.free.set()
        self.under_way = 0
        self.most_under_way = 0
        self.puts: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def put(self, key: str, data: bytes) -> None:
        self._answer()
        self.puts.append(key)
        self._store.put(key, data)

    def get(self, key: str) -> bytes:
        self._answer()
        return self._store.get(key)

    def _answer(self) -> None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            assert self.free.wait(20.0)
            if self.refuses:
                raise StoreError("the store is down")
        finally:
            self.under_way -= 1
