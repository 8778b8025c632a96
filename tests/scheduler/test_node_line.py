"""What the driver says to one node, and what it makes of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from scheduler.node_line import NodeLine
from scheduler.queue import State, WorkQueue
from scheduler.recovery import Recovery
from scheduler.stop import StopSignal
from tests.scheduler.builders import SWEEP, attempts, cells, limits, record
from tests.scheduler.builders import lease as lease_of
from tests.scheduler.fakes import FakeObserver, FakeRecords
from workers.contract.outcome import Cause
from workers.contract.report import Orders, Progress, RunningTry
from workers.contract.spec import Epoch

WALL = 1.7e9


class Driver:
    """A line to one node, with time that stands still and questions that wait."""

    def __init__(self, count: int = 4, generation: int = 1) -> None:
        self.now = 0.0
        self.generation = generation
        self.cells = cells(tasks=2)
        self.queue = WorkQueue(generation, limits(poison=99))
        for each in attempts(self.cells, count):
            self.queue.enqueue(each.attempt, index=each.index, cell=each.cell, condition="a")
        self.observer, self.records, self.stop = FakeObserver(), FakeRecords(), StopSignal()
        self.questions: list[Coroutine[Any, Any, None]] = []
        recovery = Recovery(
            SWEEP,
            self.cells,
            self.queue,
            self.records,
            self.observer,
            clock=lambda: self.now,
            spawn=self._later,
        )
        self.recovery = recovery
        self.line = self.new_line()

    def new_line(self, **more: Any) -> NodeLine:
        """A line that has not been used."""
        return NodeLine(
            "n1",
            self.generation,
            self.cells,
            self.queue,
            self.recovery,
            self.stop,
            lambda: self.now,
            wall=lambda: WALL,
            **more,
        )

    def _later(self, question: Coroutine[Any, Any, None]) -> Any:
        self.questions.append(question)
        return asyncio.get_running_loop().create_future()

    def exchange(self, poll_s: float = 1.0, **answer: Any) -> Orders:
        """One exchange; by default the node runs every lease that it was given."""
        orders = self.line.orders(poll_s)
        running = running_of(self.queue.held("n1"))
        values: dict[str, Any] = {"node": "n1", "free_slots": 0, "running": running}
        self.line.take(orders, Progress.model_validate({**values, **answer}))
        return orders

    async def ask(self) -> None:
        """Lets the store be asked what is to be asked."""
        while self.questions:
            await self.questions.pop()


def running_of(tries: Mapping[str, Epoch]) -> tuple[RunningTry, ...]:
    return tuple(RunningTry(attempt=a, epoch=e, phase="drive") for a, e in tries.items())


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_the_first_orders_ask_what_is_free_and_hold_no_lease() -> None:
    driver = Driver()
    first = driver.exchange(free_slots=3)
    assert (first.leases, first.wait_s) == ((), 0.0)
    second = driver.exchange()
    assert len(second.leases) == 3
    assert second.wait_s == 1.0


def test_cells_go_out_with_their_first_lease_and_once_only() -> None:
    driver = Driver()
    driver.exchange(free_slots=1)
    sent = [driver.exchange(free_slots=1) for _ in range(4)]
    assert [len(orders.cells) for orders in sent] == [1, 1, 0, 0]


def test_what_was_sent_without_an_answer_is_sent_again_with_its_cells() -> None:
    driver = Driver()
    driver.exchange(free_slots=3)
    lost = driver.line.orders(1.0)
    again = driver.exchange()
    assert again.leases == lost.leases
    assert again.cells == lost.cells
    assert driver.queue.held_count() == 3


def test_a_lease_that_was_lost_meanwhile_is_not_sent_again() -> None:
    driver = Driver()
    driver.exchange(free_slots=2)
    lost = driver.line.orders(1.0)
    driver.queue.forgotten("n1", [lost.leases[0].attempt])
    again = driver.line.orders(1.0)
    assert lost.leases[0] not in again.leases
    assert lost.leases[1] in again.leases


def test_the_number_of_the_last_answer_is_acknowledged() -> None:
    driver = Driver()
    driver.exchange(number=7)
    assert driver.line.orders(1.0).received == 7


def test_an_operator_who_stops_gets_no_leases_sent_and_who_insists_cancels() -> None:
    driver = Driver()
    driver.exchange(free_slots=3)
    driver.stop.request()
    drained = driver.exchange(free_slots=3)
    assert (drained.leases, drained.stop) == ((), "no")
    driver.stop.request()
    assert driver.exchange().stop == "cancel"


def test_a_poll_ends_early_for_an_attempt_in_back_off_if_a_slot_is_free() -> None:
    async def test() -> None:
        driver = Driver(count=1)
        driver.exchange(free_slots=2)
        first, second = driver.exchange(free_slots=0).leases
        ended = [
            record(driver.cells[each.cell], each, Cause.CONTAINER_LOST) for each in (first, second)
        ]
        driver.exchange(free_slots=2, ended=tuple(ended), running=())
        assert driver.line.orders(30.0).wait_s == 1.0
        driver.now = 0.99
        assert driver.line.orders(30.0).wait_s == 0.05
        driver.exchange(free_slots=0)
        assert driver.line.orders(30.0).wait_s == 30.0

    run(test())


def test_what_a_living_node_knows_nothing_of_is_lost_and_asked_for() -> None:
    async def test() -> None:
        driver = Driver(count=1)
        driver.exchange(free_slots=2)
        orders = driver.exchange(free_slots=0)
        kept, gone = (lease.attempt for lease in orders.leases)
        driver.exchange(running=running_of({kept: orders.leases[0].epoch}))
        assert driver.queue.state(kept) is State.RUNNING
        assert driver.queue.state(gone) is State.LOST
        await driver.ask()
        assert driver.queue.state(gone) is State.PLANNED
        (told,) = driver.observer.records
        assert told.cause is Cause.LEASE_EXPIRED
        assert driver.records.kept == [told]

    run(test())


def test_what_a_draining_node_refused_was_no_try() -> None:
    driver = Driver(count=1)
    driver.exchange(free_slots=2)
    orders = driver.exchange(running=(), draining="disk")
    states = {driver.queue.state(lease.attempt) for lease in orders.leases}
    assert states == {State.PLANNED}
    assert driver.line.draining == "disk"
    assert driver.exchange(free_slots=2).leases == ()
    assert len(driver.exchange().leases) == 2
    assert not driver.questions


def test_what_an_earlier_driver_leased_is_adopted_with_the_first_answer() -> None:
    driver = Driver(count=1, generation=2)
    first, second = (each.attempt for each in attempts(driver.cells, 1))
    tries = {first: Epoch(1, 7), "of another sweep": Epoch(1, 8)}
    driver.exchange(free_slots=3, running=running_of(tries))
    assert driver.line.adopted == 1
    assert driver.queue.held("n1") == {first: (1, 7)}
    assert driver.queue.state(first) is State.RUNNING
    orders = driver.line.orders(1.0)
    assert [lease.attempt for lease in orders.leases] == [second]


def test_of_an_attempt_that_runs_twice_on_a_node_the_last_try_is_adopted() -> None:
    driver = Driver(count=1, generation=2)
    first = attempts(driver.cells, 1)[0].attempt
    both = (*running_of({first: Epoch(1, 9)}), *running_of({first: Epoch(1, 7)}))
    driver.exchange(running=both)
    assert driver.queue.held("n1") == {first: (1, 9)}


def test_a_lease_that_runs_under_another_epoch_is_not_accounted_for() -> None:
    async def test() -> None:
        driver = Driver(count=1)
        driver.exchange(free_slots=1)
        (lease,) = driver.exchange().leases
        driver.exchange(running=running_of({lease.attempt: Epoch(1, 99)}))
        assert driver.queue.state(lease.attempt) is State.LOST
        await driver.ask()

    run(test())


def test_nothing_is_leased_while_others_have_not_said_what_they_run() -> None:
    driver = Driver()
    waiting = True
    driver.line = driver.new_line(may_lease=lambda: not waiting)
    driver.exchange(free_slots=3)
    assert driver.exchange(free_slots=3).leases == ()
    waiting = False
    assert len(driver.exchange().leases) == 3


@pytest.mark.parametrize("was_read", [False, True])
def test_what_ended_invalid_between_two_drivers_counts_once(was_read: bool) -> None:
    async def test() -> None:
        driver = Driver(count=1, generation=2)
        planned = attempts(driver.cells, 1)[0]
        given = lease_of(driver.cells[planned.cell], 7)
        given = given.model_copy(update={"attempt": planned.attempt})
        ended = record(driver.cells[planned.cell], given, Cause.UNCLASSIFIED)
        if was_read:
            driver.records.known.add((planned.attempt, ended.try_))
        for _ in range(2):
            driver.exchange(ended=(ended,), running=())
        await driver.ask()
        assert driver.records.kept == ([] if was_read else [ended])
        assert driver.observer.records == ([] if was_read else [ended])
        assert driver.queue.spent(planned.attempt).tries == (0 if was_read else 1)

    run(test())


def test_what_this_driver_leased_itself_is_not_adopted() -> None:
    driver = Driver(count=1)
    first = attempts(driver.cells, 1)[0].attempt
    driver.exchange(running=running_of({first: Epoch(1, 3)}))
    assert driver.line.adopted == 0


def test_a_skewed_clock_is_measured_and_told_to_the_node() -> None:
    driver = Driver()
    driver.exchange(clock_s=WALL + 3600.0)
    assert driver.line.skew_s == 3600.0
    assert driver.line.orders(1.0).clock_skew_s == 3600.0
    driver.exchange(clock_s=WALL)
    assert driver.line.orders(1.0).clock_skew_s is None
