"""One budget over the nodes of a cluster, and over drivers that follow each other."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.scheduler.ray_runs import RayCluster, Run, committed, wait_for

pytestmark = pytest.mark.ray

COUNT = 10
"""Attempts of each of four cells."""
CALLS = 3


def spent(run: Run) -> int:
    """Calls of all tries that left a record."""
    records = (run.folder / "store" / "sweeps").glob("*/tries/*/*/*/try.json")
    return sum(json.loads(path.read_bytes())["usage"]["counted"]["calls"] for path in records)


def test_three_nodes_share_a_budget_and_a_killed_drivers_spending_counts(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    first = start(COUNT, cluster.address, MAX_CALLS="30", **cluster.environment)
    (first.folder / "calls").write_text(str(CALLS))
    outcome = first.wait()
    assert (outcome["state"], outcome["reason"]) == ("budget", "max_calls 30, 30 are spent")
    assert spent(first) == 30
    assert len({node for _, node in outcome["records"]}) == 3
    assert {cause for cause, _ in outcome["records"]} <= {"none", "sweep_budget"}
    done = committed(first, COUNT)
    assert 0 < done <= 10

    # A higher one, whose driver is killed in the middle: its nodes go on within what they have.
    (first.folder / "trial_s").write_text("0.6")
    second = start(COUNT, cluster.address, beside=first, MAX_CALLS="75", **cluster.environment)
    wait_for(lambda: committed(second, COUNT) >= done + 4)
    second.kill()
    third = start(COUNT, cluster.address, beside=first, MAX_CALLS="75", **cluster.environment)
    outcome = third.wait()
    assert outcome["state"] == "budget", outcome
    assert 75 - CALLS < spent(third) <= 75
    assert done < committed(third, COUNT) <= 25
