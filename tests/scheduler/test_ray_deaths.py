"""Ray's own processes killed: a true sentence in bounded time, and a sweep that can go on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.scheduler.ray_runs import (
    RayCluster,
    Run,
    assert_each_counted_once,
    assert_nothing_left,
    committed,
    wait_for,
)

pytestmark = pytest.mark.ray

BOUND_S = 100.0
"""Ray's native code would end the driver after 60 s; this machine may be slow."""


@pytest.mark.parametrize(
    ("server", "sentence"),
    [("gcs_server", "Ray's control service (GCS) on this"), ("raylet/raylet", "(raylet) on this")],
)
def test_a_local_ray_that_loses_a_server_ends_the_sweep_with_its_name(
    start: Callable[..., Run], server: str, sentence: str
) -> None:
    run = start(1)
    run.set("trial_s", 300)
    run.wait_until_running(4)
    (pid,) = (pid for pid, title in run.processes() if server in title.split()[0])
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    outcome = run.wait()
    assert time.monotonic() - killed < BOUND_S
    assert run.process.returncode == 0
    assert outcome["state"] == "infrastructure", outcome
    assert sentence in outcome["reason"]
    assert f"process {pid}) died" in outcome["reason"]
    assert run.terminal() == ""
    assert_nothing_left(run)
    run.set("trial_s", 0.1)
    again = start(1, beside=run)
    assert again.wait()["state"] == "settled"
    assert committed(run, 1) == 4


def test_a_cluster_without_its_head_ends_the_sweep_with_its_address(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    run = start(3, cluster.address, **cluster.environment)
    run.set("trial_s", 300)
    run.wait_until_running(12)
    (head,) = cluster.processes("/gcs_server ")
    os.kill(head, signal.SIGKILL)
    killed = time.monotonic()
    outcome = run.wait()
    assert time.monotonic() - killed < BOUND_S
    assert outcome["state"] == "infrastructure", outcome
    assert f"the head of the Ray cluster at {cluster.address}" in outcome["reason"]
    assert run.terminal() == ""


@pytest.mark.parametrize("whose", ["the driver's", "another"])
def test_a_cluster_that_loses_a_node_manager_goes_on_without_it(
    start: Callable[..., Run], cluster: RayCluster, whose: str
) -> None:
    run = start(4, cluster.address, LEASE_TERM_S="15", **cluster.environment)
    run.set("trial_s", 40)
    run.wait_until_running(12)
    raylets = sorted(cluster.processes("/raylet/raylet "))
    os.kill(raylets[0] if whose == "the driver's" else raylets[-1], signal.SIGKILL)
    run.set("trial_s", 0.2)
    outcome = run.wait()
    assert outcome["state"] == "settled", outcome
    assert_each_counted_once(run, outcome)
    assert any("its leases run until their term is over" in note for note in outcome["notes"])
    assert run.terminal() == ""
    wait_for(lambda: not cluster.actors())
