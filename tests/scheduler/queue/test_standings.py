"""How attempts stand, counted move by move."""

from __future__ import annotations

import sys
import time
from collections import Counter

import pytest

from scheduler.queue import State, WorkQueue
from scheduler.retry import Spent
from tests.scheduler.builders import cell_spec, limits, record
from workers.contract.outcome import Cause, Verdict
from workers.contract.spec import Lease

CELL = cell_spec()


def queue_of(*attempts: str) -> WorkQueue:
    queue = WorkQueue(1, limits(max_tries=2, poison=9))
    for number, attempt in enumerate(attempts):
        queue.enqueue(attempt, index=number, cell="c", condition="a")
    return queue


def standings(queue: WorkQueue) -> dict[tuple[State, Cause | None], int]:
    return {
        (State(state), Cause(cause) if cause else None): count
        for _, state, cause, count in queue.standings()
    }


def end(queue: WorkQueue, lease: Lease, cause: Cause, now: float = 0.0) -> None:
    assert queue.ended(record(CELL, lease, cause), now)


def test_an_attempt_stands_by_its_state_and_its_last_try() -> None:
    queue = queue_of("a1x")
    assert standings(queue) == {(State.PLANNED, None): 1}
    (lease,) = queue.lease("n1", 1, 0.0)
    assert standings(queue) == {(State.LEASED, None): 1}
    queue.started("n1", ["a1x"])
    end(queue, lease, Cause.RATE_LIMITED)
    assert standings(queue) == {(State.PLANNED, Cause.RATE_LIMITED): 1}
    (lease,) = queue.lease("n1", 1, 100.0)
    assert standings(queue) == {(State.LEASED, Cause.RATE_LIMITED): 1}
    end(queue, lease, Cause.IMAGE_BUILD)
    assert standings(queue) == {(State.DEAD, Cause.IMAGE_BUILD): 1}
    assert queue.committed("a1x", Verdict.FAIL, Cause.WRONG)
    assert standings(queue) == {(State.COMMITTED, Cause.WRONG): 1}


def test_a_lost_lease_has_the_cause_that_its_owner_found() -> None:
    queue = queue_of("a1x", "a2x")
    queue.lease("n1", 2, 0.0)
    first, second = queue.node_lost("n1")
    assert standings(queue) == {(State.LOST, None): 2}
    queue.release(first, 0.0, Cause.NODE_LOST)
    queue.release(second, 0.0)
    assert standings(queue) == {
        (State.PLANNED, Cause.NODE_LOST): 1,
        (State.PLANNED, Cause.LEASE_EXPIRED): 1,
    }


def test_what_earlier_drivers_left_stands_at_once() -> None:
    queue = queue_of("a1x")
    for attempt, spent, cause in (
        ("b1x", Spent(2), Cause.PROVIDER_5XX),
        ("b2x", Spent(1), Cause.NODE_OOM),
    ):
        queue.enqueue(attempt, index=1, cell="d", condition="a", spent=spent, cause=cause)
    queue.committed("a1x", Verdict.PASS, Cause.NONE)
    found = {(cell, state, cause) for cell, state, cause, _ in queue.standings()}
    assert found == {
        ("c", "committed", "none"),
        ("d", "dead", "provider_5xx"),
        ("d", "planned", "node_oom"),
    }


@pytest.mark.long
def test_counting_costs_the_same_in_a_long_queue() -> None:
    def seconds_per_attempt(attempts: int) -> float:
        queue = WorkQueue(1, limits())
        for number in range(attempts):
            queue.enqueue(
                f"{number}", index=number, cell=f"{number % 2000}", condition=f"{number % 5}"
            )
        taken = 0
        started = time.process_time()
        while leases := queue.lease("n1", 100, 0.0):
            queue.started("n1", [each.attempt for each in leases])
            for each in leases:
                queue.committed(each.attempt, Verdict.FAIL, Cause.WRONG)
            taken += len(leases)
        spent = time.process_time() - started
        assert taken == attempts
        counted = Counter[str]()
        for _, state, _, count in queue.standings():
            counted[state] += count
        assert counted == {"committed": attempts}
        return spent / attempts

    short = min(seconds_per_attempt(10_000) for _ in range(3))
    long = min(seconds_per_attempt(100_000) for _ in range(2))
    sys.stdout.write(f"\n{short * 1e6:.1f} and {long * 1e6:.1f} microseconds an attempt\n")
    # A count that is made anew at each move would show as ten times; caches and noise as two.
    assert long < 4 * short
