"""When waiting for breakers to close comes to an end."""

from __future__ import annotations

from scheduler.queue import WorkQueue
from scheduler.queue.patience import out_of_patience
from tests.scheduler.builders import limits
from tests.scheduler.queue.failing import add, fail_all, queue_of
from workers.contract.outcome import Cause

LIMITS = limits()


def why(queue: WorkQueue, now: float, *nodes: str) -> str:
    return out_of_patience(queue, nodes or ("n1",), LIMITS, now)


def test_endpoints_are_waited_for_half_an_hour() -> None:
    queue = queue_of(1, 3, endpoints=("e",))
    queue.endpoint_down("e", 100.0)
    assert why(queue, 1899.0) == ""
    assert "e for 1800 s without a success" in why(queue, 1900.0)


def test_probes_that_fail_do_not_prolong_the_wait() -> None:
    queue = queue_of(1, 3, endpoints=("e",))
    queue.endpoint_down("e", 0.0)
    for minute in range(1, 30):
        fail_all(queue, "n1", 1, Cause.RATE_LIMITED, 70.0 * minute)
    assert why(queue, 1800.0)


def test_while_one_of_several_endpoints_may_come_back_there_is_hope() -> None:
    queue = queue_of(1, 3, endpoints=("e",))
    add(queue, "b", 1, 1, ("f",))
    queue.endpoint_down("e", 0.0)
    assert why(queue, 5000.0) == ""
    queue.endpoint_down("f", 4000.0)
    assert why(queue, 5000.0) == ""
    assert "e for 5800 s" in why(queue, 5800.0)


def test_all_nodes_must_be_broken_for_long() -> None:
    queue = queue_of(20)
    fail_all(queue, "n1", 5, Cause.CONTAINER_START, 0.0)
    assert why(queue, 5000.0, "n1", "n2") == ""
    fail_all(queue, "n2", 5, Cause.CONTAINER_START, 1000.0)
    assert why(queue, 2799.0, "n1", "n2") == ""
    assert "n1, n2" in why(queue, 2800.0, "n1", "n2")
    assert out_of_patience(queue, (), LIMITS, 9999.0) == ""
