from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workers.agent.worlds import World, open_world


@pytest.fixture
def world() -> Iterator[World]:
    with open_world() as opened:
        yield opened
