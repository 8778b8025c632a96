"""The circuit breakers of nodes, through the queue's public door."""

from __future__ import annotations

import pytest

from tests.scheduler.queue.failing import add, end, fail_all, queue_of, told
from workers.contract.outcome import Cause


def test_five_failures_in_ten_minutes_leave_a_node_with_probes_only() -> None:
    queue = queue_of(9)
    fail_all(queue, "n1", 4, Cause.CONTAINER_START, 0.0)
    fail_all(queue, "n1", 1, Cause.DISK_FULL, 590.0)
    assert told(queue) == ["node n1 open"]
    assert queue.lease("n1", 5, 649.0) == []
    assert len(queue.lease("n2", 1, 649.0)) == 1
    (probe,) = queue.lease("n1", 5, 650.0)
    assert not probe.probe
    assert queue.lease("n1", 5, 5000.0) == []
    end(queue, probe, Cause.WRONG, 5000.0)
    assert told(queue) == ["node n1 open", "node n1 closed"]
    assert len(queue.lease("n1", 5, 5000.0)) == 5


def test_failures_that_lie_further_apart_do_not_count_together() -> None:
    queue = queue_of(9)
    fail_all(queue, "n1", 4, Cause.CONTAINER_START, 0.0)
    fail_all(queue, "n1", 4, Cause.CONTAINER_START, 601.0)
    assert told(queue) == []


def test_a_probe_that_fails_is_followed_by_another() -> None:
    queue = queue_of(9)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 60.0)
    assert queue.counts()["a"].invalid_tries == 6
    assert queue.lease("n1", 5, 119.0) == []
    assert len(queue.lease("n1", 5, 120.0)) == 1
    assert told(queue) == ["node n1 open"]


def test_what_was_under_way_when_it_opened_does_not_close_it() -> None:
    queue = queue_of(9)
    (old,) = queue.lease("n1", 1, 0.0)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    end(queue, old, Cause.NONE, 1.0)
    assert queue.lease("n1", 1, 2.0) == []


@pytest.mark.parametrize("cause", [Cause.RATE_LIMITED, Cause.VERIFIER_CRASH, Cause.UNCLASSIFIED])
def test_only_harness_blame_counts_against_a_node(cause: Cause) -> None:
    queue = queue_of(9)
    fail_all(queue, "n1", 9, cause, 0.0)
    assert told(queue) == []


def test_a_cell_that_fails_everywhere_opens_no_nodes_breaker() -> None:
    queue = queue_of(1, 50, poison=10_000)
    for turn in range(100):
        for node in ("n1", "n2", "n3"):
            fail_all(queue, node, 3, Cause.SEED_FAILED, 10.0 * turn)
    assert queue.counts()["a"].invalid_tries > 500
    assert told(queue) == []


def test_two_bad_cells_open_no_nodes_breaker_and_poison_themselves_only() -> None:
    queue = queue_of(2, 20, poison=5)
    add(queue, "good", 3, 5, ())
    now = 0.0
    while not queue.settled:
        now += 5.0
        for node in ("n1", "n2"):
            for lease in queue.lease(node, 4, now):
                end(queue, lease, Cause.NONE if "good" in lease.cell else Cause.IMAGE_BUILD, now)
    assert sorted(queue.poisoned) == ["a0", "a1"]
    assert told(queue) == []
    assert queue.counts()["good"].passed == 15


def test_a_condition_that_fails_everywhere_opens_no_nodes_breaker() -> None:
    queue = queue_of(30, 2, max_tries=3, poison=5)
    add(queue, "good", 30, 2, ())
    add(queue, "fine", 30, 2, ())
    now = 0.0
    while not queue.settled:
        now += 1.0
        for node in ("n1", "n2"):
            for lease in queue.lease(node, 4, now):
                bad = lease.attempt[0] == "a"
                end(queue, lease, Cause.AGENT_LAUNCH if bad else Cause.NONE, now)
        if queue.counts()["good"].planned + queue.counts()["fine"].planned == 0:
            break
        assert told(queue) == []
    assert queue.counts()["good"].passed == queue.counts()["fine"].passed == 60
    assert queue.counts()["a"].invalid_tries >= 50


def test_a_node_that_fails_two_conditions_is_broken_whatever_else_is_left() -> None:
    queue = queue_of(9)
    add(queue, "b", 9, 1, ())
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    assert told(queue) == ["node n1 open"]


def test_a_bad_node_poisons_no_cell_while_another_is_at_hand() -> None:
    queue = queue_of(1, 30, poison=5)
    queue.renew("n2", 0.0)
    fail_all(queue, "n1", 9, Cause.CONTAINER_START, 0.0)
    assert queue.poisoned == []
    fail_all(queue, "n2", 1, Cause.CONTAINER_START, 0.0)
    assert queue.poisoned == ["a0"]


def test_where_the_other_node_is_gone_or_broken_a_cell_is_poisoned_by_one() -> None:
    queue = queue_of(1, 30, poison=5, lease_term_s=60.0)
    queue.renew("n2", 0.0)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 71.0)
    assert queue.poisoned == ["a0"]


def test_a_bad_node_beside_a_good_one_costs_few_tries() -> None:
    queue = queue_of(10, 40, max_tries=3, poison=5)
    now = 0.0
    while not queue.settled:
        now += 1.0
        fail_all(queue, "bad", 8, Cause.CONTAINER_START, now)
        for lease in queue.lease("good", 4, now):
            end(queue, lease, Cause.NONE, now)
    counts = queue.counts()["a"]
    assert (counts.passed, counts.dead) == (400, 0)
    # Those of the first second, and one probe a minute.
    assert counts.invalid_tries <= 8 + now / 60 + 1


def test_lost_leases_open_no_breaker() -> None:
    queue = queue_of(20)
    queue.lease("n1", 10, 0.0)
    for lost in queue.expire(100.0):
        queue.release(lost, 100.0)
    assert queue.counts()["a"].invalid_tries == 10
    assert told(queue) == []


def test_a_node_that_died_starts_anew_under_its_name() -> None:
    queue = queue_of(20)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    assert queue.broken_since(["n1"]) == 0.0
    queue.node_lost("n1")
    assert queue.broken_since(["n1"]) is None
    assert len(queue.lease("n1", 5, 1.0)) == 5
