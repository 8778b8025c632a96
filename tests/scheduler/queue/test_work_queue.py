"""The queue, rule by rule."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from scheduler.queue import LostLease, State, WorkQueue
from scheduler.retry import Spent
from tests.scheduler.builders import cell_spec, limits, record
from workers.contract.outcome import Cause, Verdict
from workers.contract.spec import Epoch, Lease

SPEC = cell_spec()


def queue_of(*names: str, generation: int = 1, **limit_changes: object) -> WorkQueue:
    """Attempts named ``<cell><number>``; a cell is of the condition of its first letter."""
    queue = WorkQueue(generation, limits(**limit_changes), grace_s=10.0)
    for number, name in enumerate(names):
        queue.enqueue(name, index=number, cell=name[:2], condition=name[0])
    return queue


def one(leases: list[Lease]) -> Lease:
    (lease,) = leases
    return lease


def fail(queue: WorkQueue, lease: Lease, cause: Cause, now: float = 0.0) -> bool:
    return queue.ended(record(SPEC, lease, cause), now)


def test_a_lease_carries_the_drivers_generation_and_a_growing_counter() -> None:
    queue = queue_of("a1x", "a1y", "b1x", generation=7)
    epochs = [lease.epoch for lease in queue.lease("n1", 3, 0.0)]
    assert epochs == [Epoch(7, 1), Epoch(7, 2), Epoch(7, 3)]


def test_conditions_are_leased_in_turn() -> None:
    queue = queue_of("a1x", "a1y", "a1z", "b1x", "b1y")
    names = [lease.attempt for lease in queue.lease("n1", 4, 0.0)]
    assert names == ["a1x", "b1x", "a1y", "b1y"]


def test_an_attempt_is_held_by_one_node_only() -> None:
    queue = queue_of("a1x")
    assert len(queue.lease("n1", 5, 0.0)) == 1
    assert queue.lease("n2", 5, 0.0) == []
    assert queue.held("n1") == {"a1x": Epoch(1, 1)}
    assert queue.held("n2") == {}


def test_a_pass_and_a_fail_settle_an_attempt_and_count_once() -> None:
    queue = queue_of("a1x", "a1y")
    x, y = queue.lease("n1", 2, 0.0)
    queue.started("n1", ["a1x", "a1y"])
    assert fail(queue, x, Cause.NONE)
    assert fail(queue, y, Cause.WRONG)
    assert not fail(queue, x, Cause.NONE)
    counts = queue.counts()["a"]
    assert (counts.passed, counts.failed, counts.held) == (1, 1, 0)
    assert queue.settled


def test_the_first_commit_wins_even_if_its_lease_was_lost_and_given_again() -> None:
    queue = queue_of("a1x")
    old = one(queue.lease("n1", 1, 0.0))
    (lost,) = queue.expire(100.0)
    assert queue.release(lost, 100.0)
    new = one(queue.lease("n2", 1, 200.0))
    assert fail(queue, old, Cause.NONE, 201.0)
    assert queue.state("a1x") is State.COMMITTED
    assert queue.held("n2") == {}
    assert not fail(queue, new, Cause.CONTAINER_LOST, 202.0)
    assert queue.counts()["a"].invalid_tries == 1


def test_a_harness_fault_is_tried_again_up_to_the_limit_then_the_attempt_is_dead() -> None:
    queue = queue_of("a1x", max_tries=3)
    now = 0.0
    for _ in range(3):
        now += 100.0
        assert fail(queue, one(queue.lease("n1", 1, now)), Cause.CONTAINER_LOST, now)
    assert queue.state("a1x") is State.DEAD
    assert queue.lease("n1", 1, 1e6) == []
    assert queue.counts()["a"].invalid_tries == 3
    assert queue.settled


@pytest.mark.parametrize("cause", [Cause.VERIFIER_CRASH, Cause.UNCLASSIFIED])
def test_some_faults_are_tried_again_once(cause: Cause) -> None:
    queue = queue_of("a1x", max_tries=5)
    assert fail(queue, one(queue.lease("n1", 1, 0.0)), cause)
    assert fail(queue, one(queue.lease("n1", 1, 100.0)), cause)
    assert queue.state("a1x") is State.DEAD


def test_what_the_operator_stopped_waits_for_a_resume_and_spends_no_try() -> None:
    queue = queue_of("a1x")
    assert fail(queue, one(queue.lease("n1", 1, 0.0)), Cause.CANCELLED)
    assert queue.state("a1x") is State.PARKED
    assert queue.spent("a1x") == Spent(0, 0)
    assert queue.settled


def test_back_off_holds_no_slot_and_grows() -> None:
    queue = queue_of("a1x", "b1x", max_tries=5, poison=9)
    first, other = queue.lease("n1", 2, 0.0)
    fail(queue, first, Cause.RATE_LIMITED, 0.0)
    assert queue.held_count() == 1
    assert queue.next_due() == 5.0
    assert queue.lease("n1", 1, 4.9) == []
    again = one(queue.lease("n1", 1, 5.0))
    fail(queue, again, Cause.RATE_LIMITED, 5.0)
    assert queue.next_due() == 15.0
    fail(queue, other, Cause.NONE)


def test_leases_expire_after_term_and_grace_without_renewal() -> None:
    queue = queue_of("a1x", lease_term_s=60.0)
    queue.lease("n1", 1, 0.0)
    assert queue.expire(70.0) == []
    (lost,) = queue.expire(70.1)
    assert (lost.attempt, lost.node, lost.epoch) == ("a1x", "n1", Epoch(1, 1))
    assert queue.state("a1x") is State.LOST
    assert queue.expire(1e9) == []


def test_orders_renew_every_lease_of_a_node() -> None:
    queue = queue_of("a1x", "a1y", lease_term_s=60.0)
    queue.lease("n1", 1, 0.0)
    queue.lease("n1", 1, 50.0)
    queue.renew("n1", 100.0)
    assert queue.expire(169.0) == []
    assert len(queue.expire(171.0)) == 2


def test_a_clock_that_jumps_back_ends_no_lease_early() -> None:
    queue = queue_of("a1x")
    queue.lease("n1", 1, 1000.0)
    queue.renew("n1", 10.0)
    assert queue.expire(1069.0) == []


def test_a_late_report_of_an_invalid_try_says_nothing_of_the_next_one() -> None:
    queue = queue_of("a1x")
    old = one(queue.lease("n1", 1, 0.0))
    (lost,) = queue.expire(100.0)
    queue.release(lost, 100.0)
    new = one(queue.lease("n2", 1, 200.0))
    assert not fail(queue, old, Cause.CONTAINER_LOST, 201.0)
    assert queue.held("n2") == {"a1x": new.epoch}
    assert queue.spent("a1x") == Spent(1, 0)


def test_a_lost_attempt_is_not_leased_before_the_store_was_asked() -> None:
    queue = queue_of("a1x")
    queue.lease("n1", 1, 0.0)
    (lost,) = queue.node_lost("n1")
    assert queue.lease("n2", 1, 1.0) == []
    assert not queue.settled
    assert queue.release(lost, 1.0)
    assert queue.state("a1x") is State.PLANNED
    assert not queue.release(lost, 1.0)
    assert queue.counts()["a"].invalid_tries == 1


def test_a_commit_found_for_a_lost_attempt_counts() -> None:
    queue = queue_of("a1x")
    queue.lease("n1", 1, 0.0)
    (lost,) = queue.node_lost("n1")
    assert queue.committed("a1x", Verdict.FAIL)
    assert not queue.release(lost, 1.0)
    assert queue.counts()["a"].failed == 1
    assert queue.counts()["a"].invalid_tries == 0


def test_the_nodes_word_that_comes_while_the_store_is_asked_counts() -> None:
    queue = queue_of("a1x")
    lease = one(queue.lease("n1", 1, 0.0))
    (lost,) = queue.expire(100.0)
    assert fail(queue, lease, Cause.VERIFIER_CRASH, 100.0)
    assert not queue.release(lost, 100.0)
    assert queue.spent("a1x") == Spent(1, 1)


def test_an_answer_about_an_earlier_loss_says_nothing_of_a_later_one() -> None:
    queue = queue_of("a1x")
    queue.lease("n1", 1, 0.0)
    (first,) = queue.node_lost("n1")
    assert queue.release(first, 0.0)
    queue.lease("n2", 1, 100.0)
    (second,) = queue.node_lost("n2")
    assert not queue.release(first, 100.0)
    assert queue.state("a1x") is State.LOST
    assert queue.release(second, 100.0)


def test_a_refused_lease_is_no_try_and_stands_first_again() -> None:
    queue = queue_of("a1x", "a1y")
    lease = one(queue.lease("n1", 1, 0.0))
    assert queue.given_back("a1x", lease.epoch)
    assert not queue.given_back("a1x", lease.epoch)
    assert queue.spent("a1x") == Spent(0, 0)
    assert one(queue.lease("n2", 1, 0.0)).attempt == "a1x"


def test_a_running_attempt_cannot_be_given_back() -> None:
    queue = queue_of("a1x")
    lease = one(queue.lease("n1", 1, 0.0))
    queue.started("n1", ["a1x"])
    assert not queue.given_back("a1x", lease.epoch)


def test_a_node_that_forgot_a_lease_loses_it() -> None:
    queue = queue_of("a1x", "a1y")
    queue.lease("n1", 2, 0.0)
    (lost,) = queue.forgotten("n1", ["a1y", "unknown"])
    assert lost.attempt == "a1y"
    assert set(queue.held("n1")) == {"a1x"}


def poison(queue: WorkQueue, times: int) -> None:
    for _ in range(times):
        fail(queue, one(queue.lease("n1", 1, 1e6)), Cause.CONTAINER_LOST, 0.0)


def test_a_cell_is_left_alone_after_so_many_invalid_tries_in_a_row() -> None:
    names = [f"a1{n}" for n in range(6)] + ["a2x"]
    queue = queue_of(*names, poison=3)
    poison(queue, 3)
    assert queue.poisoned == ["a1"]
    states = [queue.state(name) for name in names]
    assert states == [State.DEAD] * 6 + [State.PLANNED]
    queue.enqueue("a1new", index=9, cell="a1", condition="a")
    assert queue.state("a1new") is State.DEAD


def test_a_verdict_starts_the_count_anew() -> None:
    queue = queue_of(*(f"a1{n}" for n in range(6)), poison=3)
    poison(queue, 2)
    fail(queue, one(queue.lease("n1", 1, 0.0)), Cause.WRONG)
    poison(queue, 2)
    assert queue.poisoned == []
    poison(queue, 1)
    assert queue.poisoned == ["a1"]


def test_what_still_runs_of_a_poisoned_cell_may_count_but_is_not_tried_again() -> None:
    queue = queue_of(*(f"a1{n}" for n in range(6)), poison=3)
    passing, failing, refused = queue.lease("n1", 3, 0.0)
    poison(queue, 3)
    assert fail(queue, passing, Cause.NONE)
    assert fail(queue, failing, Cause.CONTAINER_LOST)
    assert queue.given_back(refused.attempt, refused.epoch)
    states = [queue.state(each.attempt) for each in (passing, failing, refused)]
    assert states == [State.COMMITTED, State.DEAD, State.DEAD]
    assert queue.settled


def test_the_operators_doing_poisons_nothing() -> None:
    queue = queue_of(*(f"a1{n}" for n in range(4)), poison=2)
    for lease in queue.lease("n1", 3, 0.0):
        fail(queue, lease, Cause.CANCELLED)
    assert queue.poisoned == []


@pytest.mark.parametrize(
    "lose",
    [lambda queue: queue.node_lost("n1"), lambda queue: queue.expire(1e6)],
    ids=["node lost", "expired"],
)
def test_one_dead_node_counts_once_towards_a_cells_limit(
    lose: Callable[[WorkQueue], list[LostLease]],
) -> None:
    queue = queue_of(*(f"a1{n}" for n in range(9)), poison=3)
    queue.lease("n1", 8, 0.0)
    for lost in lose(queue):
        queue.release(lost, 1e6)
    assert queue.poisoned == []
    assert queue.counts()["a"].invalid_tries == 8
    assert queue.counts()["a"].planned == 9


def test_another_node_is_preferred_for_the_next_try() -> None:
    queue = queue_of("a1x", "a1y")
    queue.renew("n2", 0.0)
    fail(queue, one(queue.lease("n1", 1, 0.0)), Cause.CONTAINER_LOST, 0.0)
    queue.enqueue("a1z", index=5, cell="a1", condition="a")
    fresh = [lease.attempt for lease in queue.lease("n1", 2, 50.0)]
    assert fresh == ["a1y", "a1z"]
    assert one(queue.lease("n2", 1, 50.0)).attempt == "a1x"


def test_the_same_node_does_where_there_is_nothing_else_to_do() -> None:
    queue = queue_of("a1x")
    queue.renew("n2", 0.0)
    fail(queue, one(queue.lease("n1", 1, 0.0)), Cause.CONTAINER_LOST, 0.0)
    assert one(queue.lease("n1", 1, 50.0)).attempt == "a1x"


def test_the_tries_of_earlier_drivers_count() -> None:
    queue = WorkQueue(2, limits(max_tries=3))
    queue.enqueue("x", index=0, cell="c", condition="a", spent=Spent(3, 0))
    queue.enqueue("y", index=1, cell="c", condition="a", spent=Spent(2, 2))
    queue.enqueue("z", index=2, cell="c", condition="a", spent=Spent(2, 1))
    states = [queue.state(name) for name in "xyz"]
    assert states == [State.DEAD, State.DEAD, State.PLANNED]
    assert queue.counts()["a"].invalid_tries == 7
    fail(queue, one(queue.lease("n1", 5, 0.0)), Cause.CONTAINER_LOST)
    assert queue.state("z") is State.DEAD


def test_what_is_committed_already_is_not_leased() -> None:
    queue = queue_of("a1x", "a1y")
    queue.committed("a1x", Verdict.PASS)
    assert [lease.attempt for lease in queue.lease("n1", 5, 0.0)] == ["a1y"]


def test_an_attempt_of_another_sweep_is_no_news() -> None:
    queue = queue_of("a1x")
    lease = one(queue.lease("n1", 1, 0.0)).model_copy(update={"attempt": "stranger"})
    assert not fail(queue, lease, Cause.NONE)
    assert not fail(queue, lease, Cause.CONTAINER_LOST)
    assert queue.state("stranger") is None


@pytest.mark.long
def test_a_lease_costs_the_same_in_a_long_queue() -> None:
    def seconds(attempts: int) -> float:
        queue = WorkQueue(1, limits())
        for number in range(attempts):
            queue.enqueue(
                f"{number}", index=number, cell=f"{number % 50}", condition=f"{number % 5}"
            )
        started = time.perf_counter()
        for _ in range(20):
            for lease in queue.lease("n1", 50, 0.0):
                queue.committed(lease.attempt, Verdict.PASS)
        return time.perf_counter() - started

    short = min(seconds(2_000) for _ in range(5))
    long = min(seconds(40_000) for _ in range(5))
    # Twenty times the queue: a cost that grows with it would show as twenty, caches as two.
    assert long < 8 * short
