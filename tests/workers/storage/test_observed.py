from __future__ import annotations

from pathlib import Path

import pytest

from workers.storage import InvalidKeyError, MissingKeyError, open_store
from workers.storage.observed import ObservedStore


def test_each_call_is_heard_with_its_end(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    times: list[float] = []

    def hear(operation: str, result: str, seconds: float) -> None:
        heard.append((operation, result))
        times.append(seconds)

    store = ObservedStore(open_store(f"file://{tmp_path}"), hear)
    store.create("a", b"")
    assert list(store.keys("")) == ["a"]
    with pytest.raises(MissingKeyError):
        store.get("b")
    with pytest.raises(InvalidKeyError):
        store.put("../b", b"")
    assert heard == [("create", "ok"), ("keys", "ok"), ("get", "missing"), ("put", "error")]
    assert all(0 <= seconds < 60 for seconds in times)
