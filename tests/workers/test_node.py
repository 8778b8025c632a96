"""The node: leases in, ends out, whatever the driver loses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.scheduler.builders import SWEEP, cell_spec, lease, record
from workers.contract.budget import Allowance, Spending
from workers.contract.outcome import Cause, Phase
from workers.contract.report import Orders, Progress, RunningTry
from workers.contract.spec import CellSpec, Epoch, Lease
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.node import Node

CELL = cell_spec()


class Clock:
    """Monotonic seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Trials:
    """Trials that run until they are let go."""

    def __init__(self) -> None:
        self.controls: dict[str, Control] = {}
        self.ends: dict[str, asyncio.Future[TrialEnd]] = {}
        self.begun: list[str] = []

    async def __call__(self, cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
        key = str(given.epoch)
        self.begun.append(key)
        self.controls[key] = control
        self.ends[key] = asyncio.get_running_loop().create_future()
        return await self.ends[key]

    def end(self, given: Lease, cause: Cause = Cause.NONE, commit: Commit = Commit.WRITTEN) -> None:
        self.ends[str(given.epoch)].set_result(TrialEnd(record(CELL, given, cause), commit))


async def at_once(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
    return TrialEnd(record(cell, given), Commit.WRITTEN)


def orders(*leases: Lease, wait_s: float = 0.0, generation: int = 1, **more: Any) -> Orders:
    return Orders(
        generation=generation, leases=leases, cells={CELL.cell: CELL}, wait_s=wait_s, **more
    )


def node(run: TrialFunction, **more: Any) -> Node:
    return Node("n1", SWEEP, more.pop("slots", 4), run, **more)


def tries(progress: Progress) -> list[str]:
    return [each.try_ for each in progress.ended]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a coroutine; none of these may take long."""

    async def bounded() -> None:
        async with asyncio.timeout(10.0):
            await test()

    asyncio.run(bounded())


async def settle() -> None:
    """Lets every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_lease_runs_and_its_end_is_reported_at_once() -> None:
    async def test() -> None:
        answer = await node(at_once).exchange(orders(lease(CELL), wait_s=5.0))
        assert tries(answer) == ["1-1"]
        assert answer.running == ()
        assert answer.free_slots == 4

    run(test)


def test_an_answer_without_news_says_what_runs_and_what_is_free() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        await one.exchange(orders(lease(CELL)))
        trials.controls["1-1"].entered(Phase.DRIVE)
        answer = await one.exchange(orders())
        assert answer.running == (
            RunningTry(attempt=lease(CELL).attempt, epoch=Epoch(1, 1), phase="drive"),
        )
        assert answer.free_slots == 3
        await one.close(0.0)

    run(test)


def test_free_slots_are_what_still_fits_beside_what_runs() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials, fits=lambda running: 2 - len(running))
        answer = await one.exchange(orders(*(lease(CELL, counter) for counter in (1, 2, 3))))
        assert (trials.begun, answer.free_slots) == (["1-1", "1-2"], 0)
        trials.end(lease(CELL, 1))
        await settle()
        assert (await one.exchange(orders())).free_slots == 1
        await one.close(0.0)

    run(test)


def test_an_end_is_repeated_until_an_answer_that_held_it_is_acknowledged() -> None:
    async def test() -> None:
        one = node(at_once)
        first = await one.exchange(orders(lease(CELL), wait_s=5.0))
        again = await one.exchange(orders(wait_s=5.0))
        assert tries(first) == tries(again) == ["1-1"]
        assert again.number > first.number
        none = await one.exchange(orders(received=first.number))
        assert tries(none) == []

    run(test)


def test_acknowledging_an_old_answer_keeps_what_ended_since() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        await one.exchange(orders(lease(CELL, 1), lease(CELL, 2)))
        await settle()
        trials.end(lease(CELL, 1))
        await settle()
        first = await one.exchange(orders())
        trials.end(lease(CELL, 2))
        await settle()
        second = await one.exchange(orders(received=first.number))
        assert tries(first) == ["1-1"]
        assert tries(second) == ["1-2"]

    run(test)


def test_a_lease_that_arrives_twice_runs_once() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        await one.exchange(orders(lease(CELL)))
        await one.exchange(orders(lease(CELL)))
        await settle()
        trials.end(lease(CELL))
        await settle()
        answer = await one.exchange(orders(lease(CELL)))
        late = await one.exchange(orders(lease(CELL), received=answer.number))
        assert trials.begun == ["1-1"]
        assert (tries(answer), tries(late)) == (["1-1"], [])

    run(test)


def test_orders_of_an_obsolete_driver_change_nothing() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        await one.exchange(orders(lease(CELL, 1, generation=2), generation=2))
        await settle()
        answer = await one.exchange(
            orders(lease(CELL, 9, generation=1), generation=1, stop="cancel", wait_s=5.0)
        )
        assert answer.generation == 2
        assert answer.draining
        assert trials.begun == ["2-1"]
        assert not trials.controls["2-1"].cancelled.is_set()
        await one.close(0.0)

    run(test)


def test_another_driver_is_told_what_the_one_before_had_been_told() -> None:
    async def test() -> None:
        one = node(at_once)
        first = await one.exchange(orders(lease(CELL), wait_s=5.0))
        other = await one.exchange(orders(generation=2, received=first.number))
        assert tries(other) == ["1-1"]

    run(test)


def test_a_lease_is_valid_until_its_term_and_orders_renew_it() -> None:
    async def test() -> None:
        clock, trials = Clock(), Trials()
        one = node(trials, clock=clock)
        await one.exchange(orders(lease(CELL, term_s=60.0)))
        await settle()
        control = trials.controls["1-1"]
        clock.now += 59.0
        assert control.lease_valid()
        await one.exchange(orders())
        clock.now += 59.0
        assert control.lease_valid()
        clock.now += 1.0
        assert not control.lease_valid()
        await one.close(0.0)

    run(test)


def test_a_lapsed_lease_is_not_renewed() -> None:
    async def test() -> None:
        clock, trials = Clock(), Trials()
        one = node(trials, clock=clock)
        await one.exchange(orders(lease(CELL, term_s=60.0)))
        await settle()
        clock.now += 61.0
        await one.exchange(orders())
        assert not trials.controls["1-1"].lease_valid()
        await one.close(0.0)

    run(test)


def test_late_and_superseded_tries_are_told_apart_from_counted_ones() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        given = [lease(CELL, counter) for counter in (1, 2, 3)]
        await one.exchange(orders(*given))
        await settle()
        trials.end(given[0], commit=Commit.LATE)
        trials.end(given[1], commit=Commit.SUPERSEDED)
        trials.end(given[2], Cause.CONTAINER_LOST, Commit.NONE)
        await settle()
        answer = await one.exchange(orders())
        assert [each.try_ for each in answer.late] == ["1-1"]
        assert answer.superseded == (given[1].attempt,)
        assert tries(answer) == ["1-3"]

    run(test)


def test_no_more_trials_run_than_there_are_slots() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials, slots=2)
        answer = await one.exchange(orders(*(lease(CELL, n) for n in (1, 2, 3))))
        await settle()
        assert trials.begun == ["1-1", "1-2"]
        assert answer.free_slots == 0
        await one.close(0.0)

    run(test)


def test_a_lease_of_an_unknown_cell_is_not_taken() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        stranger = lease(CELL).model_copy(update={"cell": "unknown"})
        answer = await one.exchange(orders(stranger))
        assert answer.running == ()
        assert trials.begun == []

    run(test)


def test_a_node_that_may_not_work_takes_nothing_and_says_why() -> None:
    async def test() -> None:
        trials = Trials()
        why = "disk: 1 MB free"
        one = node(trials, refusal=lambda: why)
        answer = await one.exchange(orders(lease(CELL)))
        assert (answer.draining, answer.free_slots, answer.running) == (why, 0, ())
        why = ""
        answer = await one.exchange(orders(lease(CELL)))
        assert answer.free_slots == 3
        await one.close(0.0)

    run(test)


def test_cancel_asks_every_trial_to_end_and_takes_no_lease() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        await one.exchange(orders(lease(CELL, 1)))
        await settle()
        await one.exchange(orders(lease(CELL, 2), stop="cancel"))
        await settle()
        assert trials.controls["1-1"].cancelled.is_set()
        assert trials.begun == ["1-1"]
        await one.close(0.0)

    run(test)


def test_a_trial_function_that_raises_is_an_unclassified_end_with_its_traceback() -> None:
    async def broken(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
        control.entered(Phase.VERIFY)
        raise RuntimeError("out of luck")

    async def test() -> None:
        answer = await node(broken).exchange(orders(lease(CELL), wait_s=5.0))
        (ended,) = answer.ended
        assert (ended.cause, ended.phase) == (Cause.UNCLASSIFIED, Phase.VERIFY)
        assert "out of luck" in ended.detail
        assert ended.traceback is not None
        assert "in broken" in ended.traceback

    run(test)


def test_closing_asks_trials_to_end_and_waits_for_their_teardown() -> None:
    async def polite(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
        await control.cancelled.wait()
        await asyncio.sleep(0.01)
        return TrialEnd(record(cell, given, Cause.CANCELLED), Commit.NONE)

    async def test() -> None:
        one = node(polite)
        await one.exchange(orders(lease(CELL)))
        await one.close(5.0)
        answer = await one.exchange(orders(lease(CELL, 2)))
        assert [each.cause for each in answer.ended] == [Cause.CANCELLED]
        assert answer.draining
        assert answer.running == ()

    run(test)


def test_a_trial_that_does_not_end_in_time_is_abandoned_with_a_record() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        await one.exchange(orders(lease(CELL)))
        await settle()
        await one.close(0.01)
        answer = await one.exchange(orders())
        assert [each.cause for each in answer.ended] == [Cause.CANCELLED]

    run(test)


def test_two_polls_at_once_are_both_answered() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        first = asyncio.create_task(one.exchange(orders(lease(CELL), wait_s=5.0)))
        second = asyncio.create_task(one.exchange(orders(wait_s=5.0)))
        await settle()
        trials.end(lease(CELL))
        assert tries(await first) == tries(await second) == ["1-1"]

    run(test)


def test_a_newer_driver_is_told_what_runs_under_which_epoch_and_renews_what_is_valid() -> None:
    async def test() -> None:
        clock, trials = Clock(), Trials()
        one = node(trials, clock=clock)
        kept, lapsed = lease(CELL, 1, term_s=60.0), lease(CELL, 2, term_s=5.0)
        await one.exchange(orders(kept, lapsed))
        clock.now += 30.0
        answer = await one.exchange(orders(generation=2))
        assert [each.epoch for each in answer.running] == [(1, 1), (1, 2)]
        clock.now += 59.0
        valid = [trials.controls[key].lease_valid() for key in ("1-1", "1-2")]
        assert valid == [True, False]
        await one.close(0.0)

    run(test)


def test_what_ended_between_two_drivers_is_told_to_the_newer_one_at_once() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        told = await one.exchange(orders(lease(CELL)))
        trials.end(lease(CELL))
        await asyncio.sleep(0)
        async with asyncio.timeout(5.0):
            answer = await one.exchange(orders(generation=2, wait_s=60.0, received=told.number))
        assert tries(answer) == ["1-1"]

    run(test)


def test_a_wrong_wall_clock_is_told_and_measures_nothing() -> None:
    async def test() -> None:
        clock, trials = Clock(), Trials()
        walls = iter((1e9 + 3600.0, 1e9 - 7200.0))
        one = node(trials, clock=clock, wall=lambda: next(walls))
        first = await one.exchange(orders(lease(CELL, term_s=60.0)))
        clock.now += 59.0
        assert trials.controls["1-1"].lease_valid()
        second = await one.exchange(orders())
        clock.now += 59.0
        assert trials.controls["1-1"].lease_valid()
        assert (first.clock_s, second.clock_s) == (1e9 + 3600.0, 1e9 - 7200.0)
        assert (first.held_s, second.held_s) == (0.0, 0.0)
        await one.close(0.0)

    run(test)


def test_the_skew_that_the_driver_measured_stands_on_records() -> None:
    async def test() -> None:
        async def breaks(cell: CellSpec, given: Lease, control: Control) -> TrialEnd:
            raise ValueError("a bug")

        one = node(breaks)
        answer = await one.exchange(orders(lease(CELL), clock_skew_s=3600.0, wait_s=5.0))
        assert one.clock_skew_s == 3600.0
        assert [each.clock_skew_s for each in answer.ended] == [3600.0]

    run(test)


def test_a_node_is_idle_from_its_last_trials_end_or_its_drivers_last_word() -> None:
    async def test() -> None:
        clock, trials = Clock(), Trials()
        one = node(trials, clock=clock)
        await one.exchange(orders(lease(CELL)))
        clock.now += 500.0
        assert one.idle_s == 0.0
        trials.end(lease(CELL))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clock.now += 20.0
        assert one.idle_s == 20.0
        await one.exchange(orders())
        assert one.idle_s == 0.0

    run(test)


def test_a_frozen_node_finds_its_leases_over_however_its_orders_queued_up() -> None:
    async def test() -> None:
        clock, trials = Clock(), Trials()
        one = node(trials, clock=clock)
        await one.exchange(orders(lease(CELL, term_s=60.0)))
        clock.now += 61.0  # SIGSTOP: monotonic time goes on
        answer = await one.exchange(orders())  # sent while it was frozen
        assert [each.epoch for each in answer.running] == [(1, 1)]
        assert not trials.controls["1-1"].lease_valid()
        await one.close(0.0)

    run(test)


def test_what_a_node_may_spend_comes_with_orders_and_what_it_spent_goes_back() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        given = lease(CELL)
        key = f"{given.attempt}/{given.epoch}"
        lent = Allowance(calls=1)
        await one.exchange(orders(given, allowance=lent))
        assert await one.purse.admit(key) is None
        one.purse.charge(key, Spending(calls=1, cost_usd=0.5))
        waiting = asyncio.create_task(one.purse.admit(key))
        # A call that waits for more is news: the driver need not wait for the poll's end.
        told = await one.exchange(orders(allowance=lent, wait_s=5.0))
        assert (told.wants, told.ceiling) == (True, lent)
        assert told.spent == Spending(calls=1, cost_usd=0.5)
        # And only once for each loan.
        again = asyncio.create_task(one.exchange(orders(allowance=lent, wait_s=0.2)))
        await asyncio.sleep(0.05)
        assert not again.done()
        await again
        await one.exchange(orders(allowance=Allowance(calls=2)))
        assert await waiting is None
        trials.end(given)
        await one.close(1.0)

    run(test)


def test_a_newer_driver_hears_of_tries_that_no_record_tells_of() -> None:
    async def test() -> None:
        trials = Trials()
        one = node(trials)
        done, runs = lease(CELL), lease(CELL, 2)
        runs = runs.model_copy(update={"attempt": "f" * 32})
        await one.exchange(orders(done, runs))
        for given in (done, runs):
            await one.purse.admit(f"{given.attempt}/{given.epoch}")
        trials.end(done)
        told = await one.exchange(orders(wait_s=5.0))
        assert told.spent.calls == 2
        # Acknowledged: its record is in the store, where a newer driver counts it.
        await one.exchange(orders(received=told.number))
        newer = await one.exchange(orders(generation=2))
        assert (newer.spent.calls, newer.ceiling) == (1, None)
        trials.end(runs)
        await one.close(1.0)

    run(test)
