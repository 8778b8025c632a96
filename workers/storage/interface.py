"""What Apiary needs of an object store, and the errors of a store.

The store is the ledger: a key is written once, ``create`` is the only lock. Keys are
relative, ``/``-separated, without empty, ``.`` or ``..`` parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class StoreError(Exception):
    """The store did not do what was asked; the message names operation and key."""


class MissingKeyError(StoreError):
    """There is no object at the key."""


class ClockSkewError(StoreError):
    """The store refused a request because of the time that this machine put on it."""


class InvalidKeyError(StoreError):
    """The key is not one that a store may hold."""


class Store(Protocol):
    """An object store. Calls block: use a thread where an event loop runs."""

    url: str
    """What ``open_store`` was given, without credentials."""

    def create(self, key: str, data: bytes) -> bool:
        """Writes an object only if there is none: atomic over all writers.

        Returns:
            True if this call wrote it, False if an object was there.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, whole or not at all; the last writer wins."""
        ...

    def put_file(self, key: str, path: Path) -> None:
        """Like ``put``, from a regular file, without holding it in memory."""
        ...

    def get(self, key: str) -> bytes:
        """An object's bytes.

        Raises:
            MissingKeyError: there is none.
        """
        ...

    def exists(self, key: str) -> bool:
        """Whether there is an object at the key."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys that begin with the prefix, sorted, paged as needed."""
        ...

    def children(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, sorted; one listing, however deep it is.

        A folder is the beginning of keys up to a ``/``, which ``folder`` ends with.
        """
        ...

    def delete(self, key: str) -> None:
        """Removes an object; none there is no error."""
        ...

    def clock(self) -> float | None:
        """The store's own wall clock, seconds since 1970, to the second; None if it has none."""
        ...
