"""The driver's loop after an older driver, and before a newer one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.errors import ClusterLostError
from scheduler.stop import GiveWay
from tests.scheduler import builders
from tests.scheduler.dispatching import QUICK, SHORT_TERM_S, TERM_S, Sweep, run
from tests.scheduler.fakes import FakeNode, FakeSource, passing
from workers.contract.outcome import Cause
from workers.contract.report import Orders


async def adopted_nodes(sweep: Sweep, *names: str, seconds: float) -> list[FakeNode]:
    """Nodes that run two tries each, as a driver that is gone left them."""
    nodes = []
    waiting = list(sweep.attempts)
    for name in names:
        node = FakeNode(name, passing(sweep.records, name, seconds), slots=2)
        node.adopted = True
        given = []
        for counter in (1, 2):
            planned = waiting.pop(0)
            lease = builders.lease(sweep.cells[planned.cell], counter + 10 * len(nodes))
            given.append(
                lease.model_copy(
                    update={"attempt": planned.attempt, "index": planned.index, "term_s": TERM_S}
                )
            )
        orders = Orders(generation=1, leases=tuple(given), cells=sweep.cells, wait_s=0.0)
        answer = await node.node.exchange(orders)
        assert len(answer.running) == 2
        nodes.append(node)
    return nodes


def test_what_nodes_of_an_earlier_driver_run_is_adopted_and_not_started_again() -> None:
    async def test() -> None:
        sweep = Sweep(k=3, generation=2)
        nodes = await adopted_nodes(sweep, "n1", "n2", seconds=0.2)
        fresh = FakeNode("n3", passing(sweep.records, "n3", 0.01))
        end = await sweep.run(*nodes, source=FakeSource([*nodes, fresh]))
        assert end.state == "settled"
        sweep.assert_complete()
        assert sweep.records.twice == []
        held = {each.attempt for each in sweep.attempts[:4]}
        given = {lease.attempt for node in (*nodes, fresh) for lease in node.taken}
        assert not held & given
        told = {r.attempt: r.try_ for r in sweep.observer.records}
        assert {told[attempt][:2] for attempt in held} == {"1-"}
        assert sum("is adopted with 2 running trials" in n for n in sweep.observer.notes) == 2
        await fresh.node.close(0.0)

    run(test)


def test_nothing_is_leased_before_every_adopted_node_has_spoken() -> None:
    async def test() -> None:
        sweep = Sweep(k=3, generation=2)
        slow, quick = await adopted_nodes(sweep, "n1", "n2", seconds=0.3)
        spoken = 0

        def silent(number: int) -> bool:
            nonlocal spoken
            spoken = number
            return number < 3

        slow.is_silent = silent
        asked: list[int] = []

        def orders_lost(number: int) -> bool:
            if quick.sent[number].leases:
                asked.append(spoken)
            return False

        quick.loses_orders = orders_lost
        end = await sweep.run(slow, quick)
        assert end.state == "settled"
        sweep.assert_complete()
        assert min(asked) >= 3

    run(test)


def test_an_adopted_node_that_never_speaks_holds_nothing_up_for_ever() -> None:
    async def test() -> None:
        sweep = Sweep(k=1, generation=2, lease_term_s=SHORT_TERM_S)
        dumb = FakeNode("n1", passing(sweep.records), slots=2)
        dumb.adopted = True
        dumb.is_silent = lambda _: True
        fresh = FakeNode("n2", passing(sweep.records, "n2"))
        assert (await sweep.run(dumb, fresh)).state == "settled"
        sweep.assert_complete()

    run(test)


def test_a_dead_adopted_nodes_attempts_run_elsewhere() -> None:
    async def test() -> None:
        sweep = Sweep(k=2, generation=2)
        nodes = await adopted_nodes(sweep, "n1", "n2", seconds=0.05)
        nodes[0].dies_at = 0
        assert (await sweep.run(*nodes)).state == "settled"
        sweep.assert_complete()

    run(test)


@pytest.mark.long
def test_a_node_that_was_frozen_past_its_leases_displaces_nothing_and_is_used_again() -> None:
    async def test() -> None:
        sweep = Sweep(k=12, lease_term_s=SHORT_TERM_S, poison=99)
        now = time.monotonic
        frozen_for = 0.0
        frozen = FakeNode(
            "n1", passing(sweep.records, "n1", 0.1), slots=2, clock=lambda: now() + frozen_for
        )
        other = FakeNode("n2", passing(sweep.records, "n2", 0.15), slots=2)
        began = now()

        def silent(number: int) -> bool:
            nonlocal frozen_for
            is_frozen = 0.1 < now() - began < 1.0
            frozen_for = 60.0 if now() - began > 0.1 else 0.0
            return is_frozen

        frozen.is_silent = silent
        assert (await sweep.run(frozen, other)).state == "settled"
        sweep.assert_complete()
        notes = " ".join(sweep.observer.notes)
        assert "node n1 is lost" in notes
        assert "node n1 answers again" in notes
        assert any(r.node == "n1" and r.verdict == "pass" for r in sweep.observer.records)

    run(test)


def test_an_older_driver_lets_its_trials_finish_and_ends() -> None:
    async def test() -> None:
        sweep = Sweep(k=20)
        way = GiveWay("driver 2 on host b runs the sweep", at_once=False)
        looks = 0

        async def newer() -> GiveWay | None:
            nonlocal looks
            looks += 1
            return way if looks > 1 else None

        node = FakeNode("n1", passing(sweep.records, "n1", 0.1))
        end = await sweep.run(node, newer=newer, pauses=replace(QUICK, newer=0.02))
        assert (end.state, end.reason) == ("infrastructure", way.reason)
        assert not end.nodes_taken_over
        assert sweep.queue.held_count() == 0
        given = {lease.attempt for lease in node.taken}
        assert 0 < len(given) < 80
        assert set(sweep.records.committed) == given

    run(test)


def test_what_an_older_driver_cannot_finish_in_a_term_is_ended() -> None:
    async def test() -> None:
        sweep = Sweep(k=20, lease_term_s=SHORT_TERM_S)

        async def newer() -> GiveWay | None:
            return GiveWay("driver 2", at_once=False) if sweep.queue.held_count() else None

        node = FakeNode("n1", passing(sweep.records, "n1", 60.0))
        end = await sweep.run(node, newer=newer, pauses=replace(QUICK, newer=0.02))
        assert end.state == "infrastructure"
        assert {r.cause for r in sweep.observer.records} == {Cause.CANCELLED}

    run(test)


def test_an_older_driver_on_the_same_cluster_leaves_its_nodes_as_they_are() -> None:
    async def test() -> None:
        sweep = Sweep(k=20)

        async def newer() -> GiveWay | None:
            return GiveWay("driver 2", at_once=True) if sweep.queue.held_count() else None

        node = FakeNode("n1", passing(sweep.records, "n1", 60.0))
        end = await sweep.run(node, newer=newer, pauses=replace(QUICK, newer=0.02))
        assert end.nodes_taken_over
        assert {orders.stop for orders in node.sent} == {"no"}
        assert sweep.observer.records == []

    run(test)


def test_a_node_whose_clock_is_wrong_by_an_hour_loses_no_lease_and_is_told_of_once() -> None:
    async def test() -> None:
        sweep = Sweep(k=5, lease_term_s=5.0)
        skews = [3600.0, -3600.0]
        nodes = [
            FakeNode(
                name,
                passing(sweep.records, name, 0.01),
                wall=lambda ahead=ahead: time.time() + ahead,
            )
            for name, ahead in zip(("n1", "n2"), skews, strict=True)
        ]
        assert (await sweep.run(*nodes)).state == "settled"
        sweep.assert_complete()
        assert len(sweep.observer.records) == 20
        notes = sorted(note for note in sweep.observer.notes if "clock of node" in note)
        assert len(notes) == 2
        assert "n1 is 3600.0 s ahead of" in notes[0]
        assert "n2 is 3600.0 s behind" in notes[1]
        assert nodes[0].sent[-1].clock_skew_s == pytest.approx(3600.0, abs=1.0)

    run(test)


def test_where_ray_itself_is_lost_the_sweep_ends_at_once_with_the_reason() -> None:
    class Lost(FakeSource):
        async def find(self) -> Sequence[FakeNode]:
            found = await super().find()
            if not found:
                raise ClusterLostError("Ray's control service died")
            return found

    async def test() -> None:
        sweep = Sweep(k=5)
        node = FakeNode("n1", passing(sweep.records, "n1", 60.0))
        end = await sweep.run(node, source=Lost([node]))
        assert (end.state, end.reason) == ("infrastructure", "Ray's control service died")

    run(test)


def test_what_a_node_out_of_reach_commits_under_its_leases_is_not_run_again() -> None:
    async def test() -> None:
        sweep = Sweep(k=2, lease_term_s=1.0)
        gone = FakeNode("n1", passing(sweep.records, "n1", 0.3), slots=4)
        gone.gone_at = 2
        other = FakeNode("n2", passing(sweep.records, "n2", 0.02), slots=4)
        assert (await sweep.run(gone, other)).state == "settled"
        sweep.assert_complete()
        assert sweep.records.twice == []
        assert {lease.attempt for lease in gone.taken}
        assert not {lease.attempt for lease in gone.taken} & {x.attempt for x in other.taken}
        assert any("its machine is lost; its leases run" in note for note in sweep.observer.notes)

    run(test)
