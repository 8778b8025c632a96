"""One driver after another on a real Ray: nodes adopted, nothing started twice, nothing left."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

import pytest

from tests.scheduler.ray_runs import (
    RayCluster,
    Run,
    assert_each_counted_once,
    commits,
    wait_for,
)

pytestmark = pytest.mark.ray

SLOTS = 12
"""Of three nodes with four each."""


def started_twice(run: Run) -> list[str]:
    counts = Counter(attempt for attempt, _, _ in run.starts())
    return [attempt for attempt, count in counts.items() if count > 1]


def test_a_killed_drivers_nodes_are_adopted_with_what_they_run(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    environment = {**cluster.environment, "LEASE_TERM_S": "60"}
    first = start(5, cluster.address, TRIAL_S="1", **environment)
    first.set("trial_s", 25)
    first.wait_until_running(SLOTS)
    actors = set(cluster.actors())
    first.kill()
    first.set("trial_s", 0.2)
    second = start(5, cluster.address, beside=first, **environment)
    outcome = second.wait()
    assert outcome["state"] == "settled", outcome
    assert started_twice(first) == []
    assert len(first.starts()) == 20
    assert {pid for _, _, pid in first.starts()} == actors
    assert_each_counted_once(second, outcome)
    generations = Counter(try_.partition("-")[0] for try_ in commits(first, 5).values())
    assert generations == {"1": SLOTS, "2": 8}
    assert sum("is adopted with 4 running trials" in note for note in outcome["notes"]) == 3
    # The second one ended well: it took the nodes with it.
    wait_for(lambda: not cluster.actors())
    assert second.terminal() == ""


def test_trials_whose_leases_lapsed_without_a_driver_are_late_and_count_once(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    environment = {**cluster.environment, "LEASE_TERM_S": "4", "ORPHAN_S": "600"}
    first = start(2, cluster.address, **environment)
    first.set("trial_s", 20)
    first.wait_until_running(8)
    first.kill()
    # They end with nobody there, past their leases: none may commit by itself.
    late = first.folder / "store"
    wait_for(lambda: len(list(late.rglob("late.json"))) == 8)
    assert commits(first, 2) == {}
    second = start(2, cluster.address, beside=first, **environment)
    outcome = second.wait()
    assert outcome["state"] == "settled", outcome
    assert len(first.starts()) == 8
    assert len(commits(first, 2)) == 8


def test_nodes_that_no_driver_comes_back_to_end_themselves(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    run = start(1, cluster.address, ORPHAN_S="2", **cluster.environment)
    run.set("trial_s", 5)
    run.wait_until_running(4)
    run.kill()
    wait_for(lambda: not cluster.actors())
    assert len(commits(run, 1)) == 4


def test_nodes_of_another_protocol_are_ended_before_anything_is_leased(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    first = start(1, cluster.address, **cluster.environment)
    first.set("trial_s", 60)
    first.wait_until_running(4)
    before = set(cluster.actors())
    first.kill()
    first.set("protocol", "another")
    first.set("trial_s", 0.2)
    outcome = start(1, cluster.address, beside=first, **cluster.environment).wait()
    assert outcome["state"] == "settled", outcome
    assert len(commits(first, 1)) == 4
    assert {t.partition("-")[0] for t in commits(first, 1).values()} == {"2"}
    assert not before & {pid for _, try_, pid in first.starts() if try_.startswith("2-")}


def test_a_newer_driver_of_the_same_cluster_takes_the_nodes_over(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    environment = {**cluster.environment, "LEASE_TERM_S": "60"}
    first = start(4, cluster.address, **environment)
    first.set("trial_s", 20)
    first.wait_until_running(SLOTS)
    second = start(4, cluster.address, beside=first, **environment)
    ended = first.wait()
    assert ended["state"] == "infrastructure", ended
    assert "driver 2" in ended["reason"]
    outcome = second.wait()
    assert outcome["state"] == "settled", outcome
    assert started_twice(first) == []
    assert_each_counted_once(second, ended, outcome)


def test_of_two_drivers_with_a_ray_each_the_older_ends_and_nothing_is_paid_twice(
    start: Callable[..., Run],
) -> None:
    first = start(4, LEASE_TERM_S="60")
    first.set("trial_s", 3)
    first.wait_until_running(4)
    second = start(4, beside=first, LEASE_TERM_S="60")
    ended = first.wait()
    assert ended["state"] == "infrastructure", ended
    assert "driver 2 on host" in ended["reason"]
    first.set("trial_s", 0.2)
    outcome = second.wait()
    assert outcome["state"] == "settled", outcome
    assert any("driver 1 on host" in note for note in outcome["notes"])
    assert started_twice(first) == []
    assert_each_counted_once(second, ended, outcome)


def test_a_frozen_node_displaces_and_repeats_nothing(
    start: Callable[..., Run], cluster: RayCluster
) -> None:
    run = start(5, cluster.address, LEASE_TERM_S="6", **cluster.environment)
    run.set("trial_s", 12)
    run.wait_until_running(SLOTS)
    frozen = run.starts()[0][2]
    held = {attempt for attempt, _, pid in run.starts() if pid == frozen}
    os.kill(frozen, signal.SIGSTOP)
    try:
        run.set("trial_s", 0.2)
        wait_for(lambda: held <= set(commits(run, 5)))
        before = commits(run, 5)
        run.set("trial_s", 15)
    finally:
        os.kill(frozen, signal.SIGCONT)
    outcome = run.wait()
    assert outcome["state"] == "settled", outcome
    assert_each_counted_once(run, outcome)
    after = commits(run, 5)
    assert {attempt: after[attempt] for attempt in before} == before
    assert any("is lost: no answer" in note for note in outcome["notes"])


def test_a_clock_that_is_wrong_by_an_hour_loses_no_lease_and_is_told_of(
    start: Callable[..., Run],
) -> None:
    folder = start(0)
    folder.wait()
    folder.set("wall_ahead_s", 3600)
    folder.set("trial_s", 2)
    outcome = start(3, beside=folder, LEASE_TERM_S="8").wait()
    assert outcome["state"] == "settled", outcome
    assert {cause for cause, _ in outcome["records"]} == {"none"}
    assert len(outcome["records"]) == 12
    (told,) = (note for note in outcome["notes"] if "clock of node" in note)
    assert "ahead of the driver's" in told
    assert outcome["skews"][-1] == pytest.approx(3600.0, abs=10.0)
