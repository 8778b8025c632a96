"""Faults of a sweep on three Ray nodes, whose cluster outlives its drivers."""

from __future__ import annotations

import signal

import pytest

from scheduler.bench.world import World
from tests.faults.checking import NODES, Record, busy, check, held
from tests.faults.sweeps import sweep

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.alone]


def test_the_driver_is_killed(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "driver-killed") as here:
        here.wait_for(committed=2, running=3)
        here.last.kill()
        here.resume()
        here.settle()
        check(here, "SIGKILL of the driver", record_property)


def test_a_node_is_killed(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "node-killed") as here:
        here.wait_for(committed=2, running=3)
        pid = busy(here)[0]
        assert pid in {each.pid for each in clustered.ray.actors()}
        here.world.ray.kill(pid)
        here.settle()
        assert any("is lost" in note for note in here.last.notes())
        check(here, "SIGKILL of a node", record_property)


def test_a_raylet_is_killed(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "raylet-killed") as here:
        here.wait_for(committed=2, running=3)
        head, *_ = (each.pid for each in clustered.ray.raylets())
        raylets = [clustered.ray.raylet_of(pid) for pid in busy(here)]
        clustered.ray.kill(next(pid for pid in raylets if pid != head))
        here.settle()
        check(here, "SIGKILL of a raylet", record_property)


def test_a_frozen_node_displaces_nothing(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "node-frozen", attempts=12, lease_term_s=8.0) as here:
        here.wait_for(committed=2, running=3)
        pid = busy(here)[0]
        mine = held(here, pid)
        here.world.ray.freeze(pid)
        try:
            here.until(
                "others to commit what it held", lambda: mine <= here.world.committed(here.id)
            )
        finally:
            here.world.ray.thaw(pid)
        here.settle()
        check(here, "a node frozen past its leases", record_property)


def test_the_store_is_killed_and_comes_back(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "store-killed") as here:
        here.wait_for(committed=2, running=3)
        clustered.bucket.kill()
        here.outlast(10.0)
        clustered.bucket.up()
        here.settle()
        check(here, "SIGKILL of the S3 server, back in 10 s", record_property)


def test_the_store_is_killed_and_the_sweep_gives_up(
    clustered: World, record_property: Record
) -> None:
    # A node that cannot bring its results in is left alone; with all nodes so, the sweep ends.
    breakers = {"node_breaker": 3, "node_give_up_s": 5.0}
    with sweep(clustered, "store-gone", seal_s=5.0, **breakers) as here:
        here.wait_for(committed=2, running=3)
        clustered.bucket.kill()
        try:
            assert here.end() == 5
        finally:
            clustered.bucket.up()
        here.resume()
        here.settle()
        check(here, "SIGKILL of the S3 server for good", record_property)


def test_the_store_fails_between_files_and_result(
    clustered: World, record_property: Record
) -> None:
    with sweep(clustered, "commit-refused") as here:
        here.wait_for(committed=2, running=2)
        clustered.bucket.refuse("PUT .*/result.json")
        try:
            uploaded = here.files("evidence.json")
            here.until(
                "files without a result", lambda: here.files("evidence.json") >= uploaded + 3
            )
        finally:
            clustered.bucket.allow()
        here.settle()
        check(here, "PUT of result.json refused", record_property)


def test_two_commands_resume_it_at_once(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "twice-at-once") as here:
        here.wait_for(committed=2, running=3)
        here.last.kill()
        one = here.resume()
        two = here.resume()
        here.until("both ends", lambda: one.code is not None and two.code is not None)
        assert {one.code, two.code} <= {0, 5}, (one.end, two.end)
        assert 0 in (one.code, two.code)
        check(here, "resume + resume, one cluster", record_property)


def test_the_command_is_interrupted(clustered: World, record_property: Record) -> None:
    with sweep(clustered, "interrupted") as here:
        here.wait_for(committed=2, running=3)
        here.last.signal_group(signal.SIGINT)
        assert here.end() == 130
        here.resume()
        here.settle()
        check(here, "Ctrl-C", record_property)


def test_the_head_of_the_cluster_is_killed(clustered: World, record_property: Record) -> None:
    # More attempts than can be done before the head is missed, which takes 20 s.
    with sweep(clustered, "head-killed", attempts=20) as here:
        here.wait_for(committed=2, running=3)
        clustered.ray.kill(clustered.ray.head().pid)
        assert here.end() == 5
        assert "the head of the Ray cluster at" in here.last.end["reason"]
        clustered.ray.up(NODES)
        here.resume()
        here.settle()
        check(here, "SIGKILL of the cluster's GCS", record_property)
