"""The circuit breakers of endpoints, through the queue's public door."""

from __future__ import annotations

import sys
import time

import pytest
from pydantic import ValidationError

from scheduler.queue import State, WorkQueue
from scheduler.retry import Spent
from tests.scheduler.builders import limits, record
from tests.scheduler.queue.failing import SPEC, add, end, fail_all, queue_of, told
from workers.contract.outcome import Cause, Verdict
from workers.contract.spec import Epoch, Lease


def test_ten_failures_in_a_row_park_the_cells_of_an_endpoint_and_no_others() -> None:
    queue = queue_of(3, 40, endpoints=("down",))
    add(queue, "b", 3, 40, ("up",))
    add(queue, "c", 1, 9, ("down", "up"))
    leases = queue.lease("n1", 40, 0.0)
    for lease in [each for each in leases if each.cell[0] == "a"][:10]:
        end(queue, lease, Cause.PROVIDER_5XX, 1.0)
    assert told(queue) == ["endpoint down open"]
    later = queue.lease("n1", 500, 2.0)
    assert {lease.cell[0] for lease in later} == {"b"}
    assert queue.counts()["b"].planned == 0
    assert queue.counts()["a"].dead == 0
    assert queue.poisoned == []


def test_a_verdict_in_between_starts_the_count_anew() -> None:
    queue = queue_of(3, 40, endpoints=("e",))
    fail_all(queue, "n1", 9, Cause.RATE_LIMITED, 0.0)
    end(queue, queue.lease("n1", 1, 0.0)[0], Cause.NO_REPLY, 0.0)
    fail_all(queue, "n1", 9, Cause.RATE_LIMITED, 0.0)
    assert told(queue) == []


def test_one_probe_goes_out_after_a_minute_and_a_verdict_opens_the_way() -> None:
    queue = queue_of(3, 40, endpoints=("e",))
    fail_all(queue, "n1", 10, Cause.RATE_LIMITED, 0.0)
    assert queue.lease("n1", 50, 59.0) == []
    (probe,) = queue.lease("n1", 50, 60.0)
    assert probe.probe
    assert queue.lease("n2", 50, 500.0) == []
    end(queue, probe, Cause.RATE_LIMITED, 500.0)
    assert queue.lease("n2", 50, 559.0) == []
    (probe,) = queue.lease("n2", 50, 560.0)
    end(queue, probe, Cause.WRONG, 561.0)
    assert told(queue) == ["endpoint e open", "endpoint e closed"]
    assert len(queue.lease("n1", 500, 561.0)) == 119


def test_an_hour_without_the_provider_spends_one_try_at_most_and_poisons_nothing() -> None:
    queue = queue_of(2, 10, endpoints=("e",), max_tries=3, poison=5)
    now = 0.0
    while now < 3600.0:
        for lease in queue.lease("n1", 8, now):
            end(queue, lease, Cause.PROVIDER_UNREACHABLE, now)
        now += 1.0
    names = [f"a{cell}.{index}" for cell in range(2) for index in range(10)]
    assert max(queue.spent(name).tries for name in names) == 1
    assert {queue.state(name) for name in names} == {State.PLANNED}
    assert queue.poisoned == []
    assert queue.counts()["a"].invalid_tries >= 60


def test_a_probe_that_failed_for_another_reason_spends_a_try_and_leaves_it_open() -> None:
    queue = queue_of(1, 20, endpoints=("e",))
    queue.endpoint_down("e", 0.0)
    (probe,) = queue.lease("n1", 9, 60.0)
    end(queue, probe, Cause.CONTAINER_LOST, 61.0)
    assert queue.spent(probe.attempt) == Spent(1, 0)
    assert queue.lease("n1", 9, 120.0) == []
    assert len(queue.lease("n1", 9, 121.0)) == 1


def test_a_probe_that_was_refused_or_lost_is_made_up_for() -> None:
    queue = queue_of(1, 20, endpoints=("e",))
    queue.endpoint_down("e", 0.0)
    (probe,) = queue.lease("n1", 9, 60.0)
    assert queue.given_back(probe.attempt, probe.epoch)
    (probe,) = queue.lease("n1", 9, 60.0)
    (lost,) = queue.node_lost("n1")
    assert queue.lease("n2", 9, 200.0) == []
    queue.release(lost, 200.0)
    assert len(queue.lease("n2", 9, 260.0)) == 1


def test_a_commit_of_an_earlier_try_tells_nothing_and_lets_the_next_probe_go() -> None:
    queue = queue_of(1, 20, endpoints=("e",))
    (old,) = queue.lease("n1", 1, 0.0)
    (lost,) = queue.expire(100.0)
    queue.release(lost, 100.0)
    queue.endpoint_down("e", 100.0)
    probes: list[Lease] = []
    now = 160.0
    while not probes or probes[-1].attempt != old.attempt:
        (probe,) = queue.lease("n1", 1, now)
        probes.append(probe)
        now += 61.0
        if probe.attempt != old.attempt:
            end(queue, probe, Cause.RATE_LIMITED, now - 61.0)
    end(queue, old, Cause.NONE, now)
    assert told(queue) == ["endpoint e open"]
    assert len(queue.lease("n1", 9, now)) == 1


def test_a_cell_of_two_endpoints_that_are_down_probes_both_or_waits() -> None:
    queue = queue_of(1, 5, endpoints=("e", "f"))
    queue.endpoint_down("e", 0.0)
    queue.endpoint_down("f", 30.0)
    assert queue.lease("n1", 5, 60.0) == []
    (probe,) = queue.lease("n1", 5, 90.0)
    end(queue, probe, Cause.RATE_LIMITED, 91.0, "f")
    assert queue.lease("n1", 5, 150.0) == []
    (probe,) = queue.lease("n1", 5, 151.0)
    end(queue, probe, Cause.NONE, 152.0)
    assert len(queue.lease("n1", 5, 152.0)) == 4


def test_the_word_of_those_who_see_the_requests_parks_and_frees_at_once() -> None:
    queue = queue_of(1, 5, endpoints=("e",))
    assert queue.endpoint_down("e", 0.0)
    assert not queue.endpoint_down("e", 1.0)
    assert not queue.endpoint_down("stranger", 1.0)
    assert queue.lease("n1", 5, 59.0) == []
    assert queue.endpoint_up("e")
    assert not queue.endpoint_up("e")
    assert not queue.endpoint_up("stranger")
    assert len(queue.lease("n1", 5, 59.0)) == 5


def test_telling_again_that_an_endpoint_is_down_puts_no_probe_off() -> None:
    queue = queue_of(1, 5, endpoints=("e",))
    for second in range(60):
        queue.endpoint_down("e", float(second))
    assert len(queue.lease("n1", 5, 60.0)) == 1


def test_attempts_that_are_added_while_an_endpoint_is_down_wait_too() -> None:
    queue = queue_of(1, 1, endpoints=("e",))
    queue.endpoint_down("e", 0.0)
    add(queue, "b", 2, 2, ("e", "f"))
    assert queue.lease("n1", 9, 1.0) == []
    assert queue.waiting_for_endpoints() == {"e": 0.0}
    queue.endpoint_up("e")
    assert len(queue.lease("n1", 9, 1.0)) == 5


def test_a_failure_that_names_no_endpoint_poisons_where_it_may_have_been_several() -> None:
    queue = queue_of(1, 9, endpoints=("e", "f"), poison=5)
    fail_all(queue, "n1", 5, Cause.RATE_LIMITED, 0.0)
    assert queue.poisoned == ["a0"]
    single = queue_of(1, 9, endpoints=("e",), poison=5)
    fail_all(single, "n1", 9, Cause.RATE_LIMITED, 0.0)
    assert single.poisoned == []


def test_while_only_endpoints_are_waited_for_the_sweep_is_open_and_idle() -> None:
    queue = queue_of(1, 3, endpoints=("e",))
    (first,) = queue.lease("n1", 1, 0.0)
    queue.endpoint_down("e", 5.0)
    assert queue.waiting_for_endpoints() == {}
    end(queue, first, Cause.RATE_LIMITED, 6.0)
    assert queue.waiting_for_endpoints() == {"e": 5.0}
    assert not queue.settled
    # What was in back-off is in its line now: nobody is told to come back at once, and again.
    assert queue.lease("n1", 9, 50.0) == []
    assert queue.next_due() is None
    add(queue, "b", 1, 1, ())
    assert queue.waiting_for_endpoints() == {}


def test_a_broken_node_does_not_keep_what_is_due_from_its_line() -> None:
    queue = queue_of(9, 1)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    assert queue.next_due() == 1.0
    assert queue.lease("n1", 5, 5.0) == []
    assert queue.next_due() is None


def test_a_broken_node_alone_still_probes_an_endpoint() -> None:
    queue = queue_of(9, 1, endpoints=("e",))
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    queue.endpoint_down("e", 0.0)
    (probe,) = queue.lease("n1", 5, 60.0)
    assert probe.probe
    end(queue, probe, Cause.NONE, 61.0)
    assert set(told(queue)[-2:]) == {"endpoint e closed", "node n1 closed"}


def test_a_rebuilt_queue_counts_as_the_records_of_tries_tell() -> None:
    queue = WorkQueue(2, limits(max_tries=3))
    queue.enqueue("x", index=0, cell="c", condition="a", spent=Spent(2, 0, 3), endpoints=("e",))
    assert queue.state("x") is State.PLANNED
    assert queue.counts()["a"].invalid_tries == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"node_breaker": 0},
        {"node_breaker_s": 0},
        {"node_probe_s": -1},
        {"endpoint_breaker": 0},
        {"endpoint_probe_s": 0},
        {"endpoint_give_up_s": 0},
        {"node_give_up_s": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        limits(**wrong)


def test_a_commit_found_for_a_lost_probe_closes() -> None:
    queue = queue_of(1, 3, endpoints=("e",))
    queue.endpoint_down("e", 0.0)
    (probe,) = queue.lease("n1", 1, 60.0)
    queue.node_lost("n1")
    queue.committed(probe.attempt, Verdict.FAIL)
    assert told(queue) == ["endpoint e open", "endpoint e closed"]


@pytest.mark.long
def test_an_attempt_costs_the_same_in_a_long_queue_whose_breakers_open_and_close() -> None:
    pattern = record(SPEC, Lease(attempt="x", index=0, cell="c", epoch=Epoch(1, 1), term_s=60.0))
    failed = record(
        SPEC,
        Lease(attempt="x", index=0, cell="c", epoch=Epoch(1, 1), term_s=60.0),
        Cause.RATE_LIMITED,
    )

    def seconds_per_try(attempts: int) -> float:
        queue = WorkQueue(1, limits())
        for number in range(attempts):
            cell = number % (attempts // 20)
            queue.enqueue(
                f"{number}",
                index=number,
                cell=f"{cell}",
                condition=f"{cell % 50}",
                endpoints=(f"{cell % 5}",),
            )
        now, turn, tries, started = 0.0, 0, 0, time.perf_counter()
        while not queue.settled:
            now, turn = now + 0.5, turn + 1
            if turn % 20 == 0:
                queue.endpoint_down(f"{turn % 5}", now)
            if turn % 20 == 10:
                queue.endpoint_up(f"{turn % 5}")
            for lease in queue.lease(f"n{turn % 20}", 50, now):
                tries += 1
                made = failed if tries % 40 == 0 else pattern
                told = {"attempt": lease.attempt, "try_": str(lease.epoch)}
                queue.ended(made.model_copy(update=told), now)
            queue.expire(now)
            queue.waiting_for_endpoints()
        return (time.perf_counter() - started) / tries

    short = min(seconds_per_try(5_000) for _ in range(5))
    long = min(seconds_per_try(100_000) for _ in range(2))
    # Twenty times the queue: a cost that grows with it would show as twenty, caches as two.
    assert long < 6 * short
    sys.stdout.write(f"\n{short * 1e6:.0f} and {long * 1e6:.0f} microseconds a try\n")
