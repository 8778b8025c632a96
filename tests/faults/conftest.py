"""One world for all faults, and the table of what became of them at the end of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from scheduler.bench.world import World, world
from scheduler.settings import Settings
from tests.base_image import base_image
from tests.faults.checking import NODES
from tests.faults.table import PROPERTY, Row, shown
from tests.layout.tree import ROOT


@pytest.fixture(scope="session")
def surroundings() -> Settings:
    """Of every command; nothing of the person who runs the tests but the path."""
    environment = {"PATH": os.environ["PATH"], "APIARY_BASE_IMAGE": base_image()}
    return Settings(environment=environment, state=ROOT / ".apiary")


@pytest.fixture(scope="session")
def parts(surroundings: Settings) -> Iterator[World]:
    """An S3 server that runs; Ray's nodes are started by the first who needs them."""
    with world(ROOT / "manifests", surroundings) as made:
        yield made


@pytest.fixture
def clustered(parts: World) -> World:
    """A cluster of three Ray nodes that live."""
    if len(parts.ray.raylets()) < NODES:
        parts.ray.up(NODES)
    return parts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the table."""
    rows = [
        Row.parsed(value)
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == PROPERTY and report.when == "call"
    ]
    if rows:
        terminalreporter.section("faults")
        terminalreporter.write_line(shown(rows))
