"""Nodes on a real Ray: silence on the terminal, and nothing left, however it ends."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scheduler.ray_runs import (
    RayCluster,
    Run,
    assert_nothing_left,
    committed,
    wait_for,
)

pytestmark = [pytest.mark.ray, pytest.mark.alone]


def test_a_sweep_survives_the_death_of_its_node_in_silence_and_leaves_nothing(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    run = start(5, DIES_ONCE=str(tmp_path / "died"))
    outcome = run.wait()
    assert outcome["state"] == "settled", outcome
    assert committed(run, 5) == 20
    causes = [cause for cause, _ in outcome["records"]]
    assert causes.count("none") == 20
    assert 1 <= causes.count("node_lost") <= 4
    assert set(causes) == {"none", "node_lost"}
    assert any("is lost" in note for note in outcome["notes"])
    assert run.terminal() == ""
    assert_nothing_left(run)
    (logs,) = (run.folder / "home" / "ray").iterdir()
    assert (logs / "ray.log").exists()


def test_ctrl_c_drains_and_a_second_one_cancels(start: Callable[..., Run]) -> None:
    run = start(50, TRIAL_S="20")
    run.wait_until_running()
    run.signal_group(signal.SIGINT)
    # The trials run on: a first request ends none of them.
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(1.5)
    run.signal_group(signal.SIGINT)
    started = time.monotonic()
    outcome = run.wait()
    assert time.monotonic() - started < 19.0
    assert outcome["state"] == "interrupted", outcome
    assert [cause for cause, _ in outcome["records"]] == ["cancelled"] * 4
    assert run.terminal() == ""
    assert_nothing_left(run)
    assert committed(run, 50) == 0


def test_a_killed_driver_leaves_no_process_and_its_sweep_is_resumed(
    start: Callable[..., Run],
) -> None:
    run = start(3, TRIAL_S="0.5")
    wait_for(lambda: committed(run, 3) > 0)
    run.process.kill()
    run.process.wait(10.0)
    wait_for(lambda: not run.processes())
    before = committed(run, 3)
    again = Run(run.folder, 3)
    try:
        outcome = again.wait()
        assert outcome["state"] == "settled", outcome
        assert committed(again, 3) == 12
        assert len(outcome["records"]) == 12 - before
        assert_nothing_left(again)
        # The folder of the killed one went when Ray was started again.
        assert_nothing_left(run)
    finally:
        again.end()


def test_a_node_that_cannot_work_ends_the_sweep_with_its_reason(
    start: Callable[..., Run],
) -> None:
    run = start(1, REFUSES="the Docker engine does not answer")
    outcome = run.wait()
    assert outcome["state"] == "infrastructure"
    assert "the Docker engine does not answer" in outcome["reason"]
    assert run.terminal() == ""
    assert_nothing_left(run)


def test_an_address_without_a_cluster_is_refused_in_a_sentence(
    start: Callable[..., Run],
) -> None:
    run = start(1, "127.0.0.1:1")
    outcome = run.wait()
    assert outcome["state"] == "refused"
    assert "no Ray cluster could be reached at 127.0.0.1:1" in outcome["reason"]
    assert_nothing_left(run)


def test_a_running_cluster_is_used_node_by_node_and_left_as_it_was(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    for count in (4, 5):
        run = start(count, cluster.address, **cluster.environment)
        outcome = run.wait()
        assert outcome["state"] == "settled", outcome
        assert committed(run, count) == 4 * count
        assert len({node for _, node in outcome["records"]}) == 3
        # Each of its nodes serves its own metrics, and the driver has heard where.
        assert set(outcome["slots"].values()) == {4.0}
        assert set(outcome["slots"]) >= {node for _, node in outcome["records"]}
        kept = (run.folder / "store" / "sweeps").glob("*/report/metrics-*.txt")
        assert len(list(kept)) == 3
        assert run.terminal() == ""
        assert_nothing_left(run)
        wait_for(lambda: not cluster.actors())
    assert cluster.processes("raylet")
