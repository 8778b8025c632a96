from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.container.engines import Bench, nothing_labelled


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A node of its own; after the test nothing carries its label."""
    bench = Bench(tmp_path)
    yield bench
    assert nothing_labelled(f"apiary.node={bench.node}")
