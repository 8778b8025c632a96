"""The driver's loop with nodes that fail in every way they can."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler.dispatch import NodeHandle
from scheduler.errors import ClusterError, NoNodeError
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd
from tests.scheduler import builders
from tests.scheduler.dispatching import QUICK, SHORT_TERM_S, Sweep, run
from tests.scheduler.fakes import (
    FakeNode,
    FakeObserver,
    FakeSource,
    passing,
    scripted,
)
from workers.contract.outcome import Cause
from workers.contract.report import Progress
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Commit, Control, TrialEnd


def test_a_sweep_runs_to_its_end_on_two_nodes() -> None:
    async def test() -> None:
        sweep = Sweep(k=10)
        nodes = [
            FakeNode(name, passing(sweep.records, name, 0.002), slots=3) for name in ("n1", "n2")
        ]
        end = await sweep.run(*nodes)
        assert end == SweepEnd(builders.SWEEP, "settled")
        sweep.assert_complete()
        assert {r.node for r in sweep.observer.records} == {"n1", "n2"}
        assert sorted(sweep.records.index) == sorted(sweep.records.committed)
        assert sweep.records.indexed == 40
        last = sweep.observer.views[-1]
        assert sum(each.passed for each in last.conditions) == 40
        assert last.nodes == 2
        assert sum(last.standings.values()) == 40
        assert {(s.state, s.verdict, s.cause) for s in last.standings} == {
            ("committed", "pass", "none")
        }
        assert {s.task for s in last.standings} == {cell.task.name for cell in sweep.cells.values()}
        assert [(each.node, each.metrics) for each in last.node_views] == [
            ("n1", "n1:9000"),
            ("n2", "n2:9000"),
        ]

    run(test)


def test_a_node_is_given_each_cell_once_and_no_more_leases_than_slots() -> None:
    async def test() -> None:
        sweep = Sweep(k=10)
        most = 0

        async def counting(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            nonlocal most
            most = max(most, sweep.queue.held_count())
            return await passing(sweep.records, seconds=0.002)(cell, lease, control)

        node = FakeNode("n1", counting, slots=3)
        await sweep.run(node)
        cells = [cell for orders in node.sent for cell in orders.cells]
        assert sorted(cells) == sorted(sweep.cells)
        assert most == 3

    run(test)


def test_orders_go_out_in_batches() -> None:
    async def test() -> None:
        sweep = Sweep(k=50)
        node = FakeNode("n1", passing(sweep.records), slots=100)
        await sweep.run(node)
        sweep.assert_complete()
        assert len(node.sent) < 20

    run(test)


def test_lost_answers_and_lost_orders_lose_nothing_and_repeat_nothing() -> None:
    async def test() -> None:
        sweep = Sweep(k=6)
        node = FakeNode("n1", passing(sweep.records, seconds=0.002), slots=5)
        node.loses_answer = lambda number: number % 3 == 1
        node.loses_orders = lambda number: number % 7 == 2
        end = await sweep.run(node)
        assert end.state == "settled"
        sweep.assert_complete()
        assert not sweep.records.twice
        assert all(r.verdict == "pass" for r in sweep.observer.records)

    run(test)


def test_a_silent_moment_is_survived() -> None:
    async def test() -> None:
        sweep = Sweep(k=6)
        node = FakeNode("n1", passing(sweep.records, seconds=0.002), slots=5)
        node.is_silent = lambda number: number in (2, 3)
        assert (await sweep.run(node)).state == "settled"
        sweep.assert_complete()
        assert not sweep.observer.notes

    run(test)


def test_a_dead_nodes_attempts_are_run_by_another_at_once() -> None:
    async def test() -> None:
        sweep = Sweep(k=3)
        dying = FakeNode("n1", passing(sweep.records, "n1", 60.0))
        dying.dies_at = 3
        other = FakeNode("n2", passing(sweep.records, "n2", 0.01), slots=4)
        end = await sweep.run(dying, other)
        assert end.state == "settled"
        sweep.assert_complete()
        lost = [r for r in sweep.observer.records if r.verdict == "invalid"]
        assert {(r.cause, r.node) for r in lost} == {(Cause.NODE_LOST, "n1")}
        assert lost == sweep.records.kept
        assert any("n1 is lost: its process died" in note for note in sweep.observer.notes)
        views = sweep.observer.views
        assert (views[-1].lost_nodes, [each.node for each in views[-1].node_views]) == (1, ["n2"])
        assert sum(views[-1].standings.values()) == 12

    run(test)


def test_what_a_dead_node_had_committed_counts_and_is_not_run_again() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        dying = FakeNode("n1", passing(sweep.records, "n1"))
        dying.loses_answer = lambda number: number == 1
        dying.dies_at = 2
        late = FakeNode("n2", passing(sweep.records, "n2"))
        end = await sweep.run(source=FakeSource([dying], [], [], [late]))
        assert end.state == "settled"
        sweep.assert_complete()
        assert not late.taken
        assert {r.node for r in sweep.observer.records} == {"n1"}

    run(test)


def test_a_node_that_falls_silent_for_good_is_given_up_after_a_term() -> None:
    async def test() -> None:
        sweep = Sweep(k=2, lease_term_s=SHORT_TERM_S, max_tries=9, poison=99)
        silent = FakeNode("n1", passing(sweep.records, "n1", 60.0))
        silent.is_silent = lambda number: number >= 2
        other = FakeNode("n2", passing(sweep.records, "n2", 0.01))
        end = await sweep.run(silent, other)
        assert end.state == "settled"
        sweep.assert_complete()
        causes = {r.cause for r in sweep.observer.records if r.verdict == "invalid"}
        assert causes == {Cause.LEASE_EXPIRED}
        expired = sum(r.cause is Cause.LEASE_EXPIRED for r in sweep.observer.records)
        assert sweep.observer.views[-1].expired_leases == expired

    run(test)


def test_a_late_try_is_accepted_instead_of_being_run_again() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)

        async def late(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            ended = builders.record(cell, lease)
            sweep.records.finished[lease.attempt] = ended
            return TrialEnd(ended, Commit.LATE)

        node = FakeNode("n1", late)
        assert (await sweep.run(node)).state == "settled"
        sweep.assert_complete()
        assert len(node.taken) == 4

    run(test)


def test_a_try_that_ends_after_its_attempt_was_given_away_counts_if_it_is_first() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        told = asyncio.Event()

        async def slow(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            await told.wait()
            return TrialEnd(builders.record(cell, lease, node="n1"), Commit.LATE)

        async def slower(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            told.set()
            await asyncio.sleep(0.3)
            ended = builders.record(cell, lease, node="n2")
            return TrialEnd(ended, sweep.records.commit(ended))

        first = FakeNode("n1", slow)
        # It forgets, so that the attempt is given to the other, and remembers at the end.
        first.edit = lambda progress: progress.model_copy(
            update={"running": {}, "draining": "" if told.is_set() else "busy"}
        )
        end = await sweep.run(first, FakeNode("n2", slower))
        assert end.state == "settled"
        sweep.assert_complete()

    run(test)


def test_an_attempt_that_another_try_committed_is_looked_up() -> None:
    async def test() -> None:
        sweep = Sweep(k=2)
        first = sweep.attempts[0]
        given = builders.lease(sweep.cells[first.cell], 99).model_copy(
            update={"attempt": first.attempt}
        )
        earlier = builders.record(sweep.cells[first.cell], given, Cause.WRONG, node="n0")
        sweep.records.committed[first.attempt] = earlier
        end = await sweep.run(FakeNode("n1", passing(sweep.records)))
        assert end.state == "settled"
        sweep.assert_complete()
        assert sweep.records.committed[first.attempt] is earlier
        assert earlier in sweep.observer.records

    run(test)


def test_a_report_that_comes_twice_counts_once() -> None:
    async def test() -> None:
        sweep = Sweep(k=4)
        node = FakeNode("n1", passing(sweep.records, seconds=0.002))
        seen: list[Any] = []

        def repeat(progress: Progress) -> Progress:
            seen.extend(progress.ended)
            return progress.model_copy(update={"ended": tuple(seen)})

        node.edit = repeat
        assert (await sweep.run(node)).state == "settled"
        sweep.assert_complete()

    run(test)


def test_an_invalid_try_is_tried_again_and_one_that_never_works_is_given_up() -> None:
    async def test() -> None:
        sweep = Sweep(k=2, max_tries=2, poison=99)
        bad = sweep.attempts[0].attempt
        tried: Counter[str] = Counter()

        def cause(cell: CellSpec, lease: Lease) -> Cause:
            tried[lease.attempt] += 1
            if lease.attempt == bad:
                return Cause.VERIFIER_CRASH
            return Cause.VERIFIER_CRASH if tried[lease.attempt] == 1 else Cause.WRONG

        end = await sweep.run(FakeNode("n1", scripted(sweep.records, cause)))
        assert end.state == "settled"
        assert set(tried.values()) == {2}
        last = sweep.observer.views[-1].conditions
        assert sum(each.invalid for each in last) == 1
        assert sum(each.failed for each in last) == 7
        assert sum(each.invalid_tries for each in last) == 9

    run(test)


def test_a_poisoned_cell_is_told_of() -> None:
    async def test() -> None:
        sweep = Sweep(k=4, poison=2)
        bad = sweep.attempts[0].cell

        def cause(cell: CellSpec, lease: Lease) -> Cause:
            return Cause.VERIFIER_CRASH if cell.cell == bad else Cause.NONE

        await sweep.run(FakeNode("n1", scripted(sweep.records, cause), slots=1))
        assert any(bad in note and "left alone" in note for note in sweep.observer.notes)
        assert len(sweep.records.committed) == 12

    run(test)


def test_the_first_request_to_stop_lets_running_trials_finish() -> None:
    async def test() -> None:
        sweep = Sweep(k=10)

        async def stopping(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            sweep.stop.request()
            sweep.stop = StopSignal()  # one request only
            return await passing(sweep.records, seconds=0.05)(cell, lease, control)

        node = FakeNode("n1", stopping, slots=4)
        end = await sweep.run(node)
        assert end.state == "interrupted"
        assert len(sweep.records.committed) == 4
        assert len(sweep.observer.records) == 4
        assert sweep.observer.views[-1].stopping
        assert sum(each.waiting for each in sweep.observer.views[-1].conditions) == 36

    run(test)


def test_the_second_request_ends_running_trials() -> None:
    async def test() -> None:
        sweep = Sweep(k=10)

        async def stopping(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            sweep.stop.request()
            return await passing(sweep.records, seconds=60.0)(cell, lease, control)

        end = await sweep.run(FakeNode("n1", stopping, slots=4))
        assert end.state == "interrupted"
        assert {r.cause for r in sweep.observer.records} == {Cause.CANCELLED}
        assert len(sweep.observer.records) == 4
        assert not sweep.records.committed

    run(test)


def test_trials_that_ignore_the_second_request_are_abandoned_in_bounded_time() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)

        async def deaf(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            sweep.stop.request()
            sweep.stop.request()
            await asyncio.sleep(60.0)
            raise AssertionError("it was not abandoned")

        end = await sweep.run(FakeNode("n1", deaf))
        assert end.state == "interrupted"
        assert "did not end within 1 s" in end.reason

    run(test)


def test_a_request_after_the_last_lease_leaves_the_sweep_settled() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)

        async def last(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            if not sweep.stop.draining:
                sweep.stop.request()
            return await passing(sweep.records, seconds=0.02)(cell, lease, control)

        assert (await sweep.run(FakeNode("n1", last))).state == "settled"
        sweep.assert_complete()

    run(test)


def test_without_a_node_the_sweep_ends_in_bounded_time() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        end = await sweep.run()
        assert end.state == "infrastructure"
        assert "there was none" in end.reason

    run(test)


def test_the_reason_of_every_lost_node_is_told_at_the_end() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        node = FakeNode("n1", passing(sweep.records))
        node.dies_at = 0
        end = await sweep.run(node)
        assert end.state == "infrastructure"
        assert "n1: its process died" in end.reason

    run(test)


def test_a_cluster_that_cannot_be_asked_is_told_of() -> None:
    class Broken:
        async def find(self) -> Sequence[NodeHandle]:
            raise ClusterError("Ray did not answer in 20 s")

    async def test() -> None:
        end = await Sweep(k=1).run(source=Broken())
        assert end.state == "infrastructure"
        assert "Ray did not answer" in end.reason

    run(test)


def test_where_no_node_will_come_the_sweep_ends_at_once() -> None:
    class Hopeless:
        async def find(self) -> Sequence[NodeHandle]:
            raise NoNodeError("a node was started 3 times: no Docker engine")

    async def test() -> None:
        end = await Sweep(k=1).run(source=Hopeless(), pauses=replace(QUICK, no_node=1000.0))
        assert end.state == "infrastructure"
        assert "no Docker engine" in end.reason

    run(test)


def test_a_node_that_drains_gets_nothing_until_it_can_work_again() -> None:
    async def test() -> None:
        sweep = Sweep(k=2)
        node = FakeNode("n1", passing(sweep.records))
        refusals = ["disk"] * 8
        node.node._refusal = lambda: refusals.pop() if refusals else ""
        assert (await sweep.run(node)).state == "settled"
        sweep.assert_complete()
        assert not sweep.observer.notes

    run(test)


def test_leases_that_cross_a_nodes_refusal_are_no_tries() -> None:
    async def test() -> None:
        sweep = Sweep(k=2)
        node = FakeNode("n1", passing(sweep.records))
        refused = False

        def refusal() -> str:
            nonlocal refused
            if len(node.sent) == 2 and not refused:
                refused = len(node.sent[1].leases) > 0
            return "disk" if len(node.sent) == 2 else ""

        node.node._refusal = refusal
        assert (await sweep.run(node)).state == "settled"
        assert refused
        sweep.assert_complete()
        assert len(sweep.observer.records) == len(sweep.attempts)

    run(test)


def test_only_draining_nodes_end_the_sweep_with_their_reason() -> None:
    async def test() -> None:
        sweep = Sweep(k=1)
        node = FakeNode("n1", passing(sweep.records))
        node.node._refusal = lambda: "disk: 3 MB free"
        end = await sweep.run(node)
        assert end.state == "infrastructure"
        assert "n1: disk: 3 MB free" in end.reason

    run(test)


def test_a_node_that_joins_later_helps() -> None:
    async def test() -> None:
        sweep = Sweep(k=10)
        first = FakeNode("n1", passing(sweep.records, "n1", 0.02), slots=1)
        second = FakeNode("n2", passing(sweep.records, "n2", 0.02), slots=1)
        await sweep.run(source=FakeSource([first], [], [second]))
        sweep.assert_complete()
        assert {r.node for r in sweep.observer.records} == {"n1", "n2"}

    run(test)


def test_a_driver_whose_nodes_obey_a_newer_one_ends() -> None:
    async def test() -> None:
        sweep = Sweep(k=2)
        node = FakeNode("n1", passing(sweep.records))
        node.edit = lambda progress: progress.model_copy(update={"generation": 5})
        end = await sweep.run(node)
        assert end.state == "infrastructure"
        assert "driver 5 has taken over" in end.reason
        assert end.nodes_taken_over

    run(test)


def test_a_store_that_is_down_delays_nothing_and_is_told_of() -> None:
    async def test() -> None:
        sweep = Sweep(k=2)
        sweep.records.down = True
        dying = FakeNode("n1", passing(sweep.records, "n1", 60.0))
        dying.dies_at = 3
        end = await sweep.run(dying, FakeNode("n2", passing(sweep.records, "n2", 0.01)))
        assert end.state == "settled"
        sweep.assert_complete()
        assert any("the store is down" in note for note in sweep.observer.notes)

    run(test)


@pytest.mark.parametrize("cause", [Cause.UNCLASSIFIED, Cause.STORE_UNAVAILABLE])
def test_the_driver_keeps_records_that_the_node_may_not_have_written(cause: Cause) -> None:
    async def test() -> None:
        sweep = Sweep(k=1, max_tries=1, poison=99)
        await sweep.run(FakeNode("n1", scripted(sweep.records, lambda *_: cause)))
        assert len(sweep.records.kept) == 4

    run(test)


def test_a_bug_in_an_observer_is_raised_and_leaves_no_task() -> None:
    class Broken(FakeObserver):
        def ended(self, ended: Any) -> None:
            raise ZeroDivisionError

    async def test() -> None:
        sweep = Sweep(k=1)
        sweep.observer = Broken()
        with pytest.raises(ZeroDivisionError):
            await sweep.run(FakeNode("n1", passing(sweep.records)))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(test)
