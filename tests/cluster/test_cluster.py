"""Sweeps over machines with an engine each: cables pulled out, machines that come and go."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.cluster.sweep import cluster_sweep
from tests.cluster.world import WORKSPACE, ClusterWorld, cluster_world

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.alone]

RAY = {
    # Lost after five checks without an answer: about half a minute, Ray's own figures give one.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "6000",
    "RAY_health_check_failure_threshold": "5",
    # After which a raylet that hears of no head ends itself.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "30",
}
LIMITS = {"lease_term_s": 35.0, "seal_s": 60.0}
SHORT_S = 20.0
LONG_S = 45.0


@pytest.fixture(scope="module")
def parts() -> Iterator[ClusterWorld]:
    """Two machines that are joined, and one that could."""
    with cluster_world(RAY) as made:
        one, two, _ = made.start("node-1", "node-2", "node-3")
        made.join(one)
        made.join(two)
        yield made


def test_one_sweep_outlasts_cuts_and_machines_that_come_and_go(parts: ClusterWorld) -> None:
    with cluster_sweep(parts, "come-and-go", attempts=14, **LIMITS) as here:
        one, two, three = (parts.machines[f"node-{number}"] for number in (1, 2, 3))
        here.meanwhile("trials on both", lambda: here.runs_on("node-1") and here.runs_on("node-2"))
        # What they work with came through the store and was built by their own engines.
        assert not two.folder(str(parts.folder)).exists()
        assert any(two.folder(f"{WORKSPACE}/tasks").iterdir())

        # A short cut loses nothing; one more machine joins in mid sweep.
        with here.cut_for(two, SHORT_S):
            parts.join(three)
        here.meanwhile("a trial on the third", lambda: here.runs_on("node-3"))
        assert here.causes() == Counter()
        assert not [note for note in here.last.notes() if "is lost" in note]

        # One machine is taken away, and one is cut off for so long that it is lost.
        before = set(two.actors())
        here.meanwhile("a trial on the second", lambda: here.runs_on("node-2"))
        with here.cut_for(two, LONG_S):
            one.leave()
            here.until_told("node node-2 is lost")
            here.until_told("node node-1 is lost")
        here.meanwhile(
            "trials of a new node on the second",
            lambda: bool(set(two.actors()) - before) and here.runs_on("node-2"),
        )
        here.settle()
        assert set(here.causes()) <= {"lease_expired", "node_lost"}
        assert set(here.counted_on()) == {"node-1", "node-2", "node-3"}

        # Nothing of Apiary runs on the first any more; what is left of its trials goes on request.
        told = one.run(sys.executable, "-m", "scheduler", "reap", "--workspace", WORKSPACE)
        assert told.returncode == 0, told.stderr
        here.check()
