from __future__ import annotations

from pathlib import Path

import pytest

import scheduler.cli.running
from tests.scheduler.cli.builders import FakeDriver, World, make_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(tmp_path, monkeypatch)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(scheduler.cli.running, "run_sweep", fake)
    return fake
