"""The object store: one interface, a door to a directory and a door to S3."""

from __future__ import annotations

from workers.storage.interface import (
    ClockSkewError,
    InvalidKeyError,
    MissingKeyError,
    Store,
    StoreError,
)
from workers.storage.observed import ObservedStore
from workers.storage.open import StoreUrlError, open_store

__all__ = [
    "ClockSkewError",
    "InvalidKeyError",
    "MissingKeyError",
    "ObservedStore",
    "Store",
    "StoreError",
    "StoreUrlError",
    "open_store",
]
