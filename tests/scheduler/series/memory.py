"""A store in memory, for histories of a year."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator
from pathlib import Path

from workers.storage.interface import MissingKeyError


class MemoryStore:
    """Objects in a dictionary; safe to be used by several threads."""

    def __init__(self) -> None:
        self.url = "file:///memory"
        self._objects: dict[str, bytes] = {}
        self._sorted: list[str] = []
        self._lock = threading.Lock()

    def create(self, key: str, data: bytes) -> bool:
        with self._lock:
            if key in self._objects:
                return False
            self._write(key, data)
            return True

    def put(self, key: str, data: bytes) -> None:
        with self._lock:
            self._write(key, data)

    def put_file(self, key: str, path: Path) -> None:
        self.put(key, path.read_bytes())

    def get(self, key: str) -> bytes:
        with self._lock:
            if key not in self._objects:
                raise MissingKeyError(f"get {key}: there is none")
            return self._objects[key]

    def exists(self, key: str) -> bool:
        with self._lock:
            return key in self._objects

    def keys(self, prefix: str) -> Iterator[str]:
        with self._lock:
            start = bisect.bisect_left(self._sorted, prefix)
            end = bisect.bisect_left(self._sorted, prefix + "\U0010ffff")
            found = self._sorted[start:end]
        yield from found

    def children(self, folder: str) -> list[str]:
        found = (key.removeprefix(folder) for key in self.keys(folder))
        return sorted({name.partition("/")[0] for name in found if "/" in name})

    def delete(self, key: str) -> None:
        with self._lock:
            if self._objects.pop(key, None) is not None:
                del self._sorted[bisect.bisect_left(self._sorted, key)]

    def clock(self) -> float | None:
        return None

    def _write(self, key: str, data: bytes) -> None:
        if key not in self._objects:
            bisect.insort(self._sorted, key)
        self._objects[key] = data
