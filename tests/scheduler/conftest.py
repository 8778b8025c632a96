"""Real Rays for the tests of the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scheduler.ray_runs import RayCluster, Run, ray_cluster


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Begins runs, each in a folder of its own unless it is given another's."""
    runs: list[Run] = []

    def begin(count: int, *more: str, beside: Run | None = None, **environment: str) -> Run:
        folder = tmp_path / f"run-{len(runs)}" if beside is None else beside.folder
        folder.mkdir(exist_ok=True)
        if beside is not None:
            environment = {"OUTCOME": f"outcome-{len(runs)}.json", **environment}
        runs.append(Run(folder, count, *more, **environment))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RayCluster]:
    """Three Ray nodes that outlive their drivers."""
    with ray_cluster(tmp_path) as made:
        yield made
