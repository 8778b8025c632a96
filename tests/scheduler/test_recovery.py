"""What becomes of tries that the driver lost sight of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from scheduler.queue import LostLease, State, WorkQueue
from scheduler.recovery import Recovery
from tests.scheduler.builders import SWEEP, attempts, cells, limits, record
from tests.scheduler.fakes import FakeObserver, FakeRecords
from workers.contract.outcome import Cause
from workers.contract.spec import Lease

CELLS = cells()
(FIRST,) = attempts(CELLS, 1)


class Scene:
    """One attempt, leased to a node."""

    def __init__(self) -> None:
        self.queue = WorkQueue(1, limits())
        self.queue.enqueue(FIRST.attempt, index=0, cell=FIRST.cell, condition="a")
        (self.lease,) = self.queue.lease("n1", 1, 10.0)
        self.observer, self.records = FakeObserver(), FakeRecords()
        self.tasks: list[asyncio.Task[None]] = []
        self.recovery = Recovery(
            SWEEP,
            CELLS,
            self.queue,
            self.records,
            self.observer,
            clock=lambda: 25.0,
            spawn=self._spawn,
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.ensure_future(work))
        return self.tasks[-1]

    def lose(self) -> tuple[LostLease, ...]:
        return tuple(self.queue.node_lost("n1"))

    def ended(self, cause: Cause, lease: Lease | None = None) -> Any:
        return record(CELLS[FIRST.cell], lease or self.lease, cause)

    async def settle(self) -> None:
        assert self.recovery.busy == bool(self.tasks)
        await asyncio.gather(*self.tasks)
        await asyncio.sleep(0)
        assert not self.recovery.busy


def run(test: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def made() -> None:
        await test(Scene())

    asyncio.run(made())


def test_a_lost_try_of_which_nothing_is_found_counts_and_its_record_is_kept() -> None:
    async def test(scene: Scene) -> None:
        scene.recovery.lost(scene.lose(), Cause.NODE_LOST, "its process died")
        await scene.settle()
        assert scene.queue.state(FIRST.attempt) is State.PLANNED
        (told,) = scene.observer.records
        assert scene.records.kept == [told]
        assert (told.cause, told.node, told.try_) == (Cause.NODE_LOST, "n1", "1-1")
        assert told.detail == "its process died"
        assert told.started_at < told.ended_at

    run(test)


@pytest.mark.parametrize("where", ["committed", "finished"])
def test_a_lost_try_that_had_finished_counts_as_what_it_was(where: str) -> None:
    async def test(scene: Scene) -> None:
        ended = scene.ended(Cause.WRONG)
        getattr(scene.records, where)[FIRST.attempt] = ended
        scene.recovery.lost(scene.lose(), Cause.NODE_LOST, "its process died")
        await scene.settle()
        assert scene.queue.state(FIRST.attempt) is State.COMMITTED
        assert scene.observer.records == [ended]
        assert scene.records.kept == []
        assert scene.records.index == [FIRST.attempt]

    run(test)


def test_a_store_that_does_not_answer_only_costs_a_try() -> None:
    async def test(scene: Scene) -> None:
        scene.records.down = True
        scene.recovery.lost(scene.lose(), Cause.NODE_LOST, "its process died")
        await scene.settle()
        assert scene.queue.state(FIRST.attempt) is State.PLANNED
        assert len(scene.observer.records) == 1
        assert all("the store is down" in note for note in scene.observer.notes)

    run(test)


def test_a_late_try_is_committed_even_if_its_attempt_was_leased_again() -> None:
    async def test(scene: Scene) -> None:
        ended = scene.ended(Cause.NONE)
        (lost,) = scene.lose()
        scene.queue.release(lost, 10.0)
        assert scene.queue.lease("n2", 1, 100.0)
        scene.recovery.late(ended)
        await scene.settle()
        assert scene.queue.state(FIRST.attempt) is State.COMMITTED
        assert scene.records.committed == {FIRST.attempt: ended}

    run(test)


def test_a_late_try_is_not_asked_for_twice_or_for_a_settled_attempt() -> None:
    async def test(scene: Scene) -> None:
        ended = scene.ended(Cause.NONE)
        scene.lose()
        scene.recovery.late(ended)
        assert not scene.recovery.busy
        scene.queue.committed(FIRST.attempt, ended.verdict)
        scene.recovery.late(ended)
        scene.recovery.late(ended.model_copy(update={"attempt": "stranger"}))
        assert not scene.recovery.busy

    run(test)


@pytest.mark.parametrize(
    ("cause", "kept"),
    [
        (Cause.UNCLASSIFIED, True),
        (Cause.STORE_UNAVAILABLE, True),
        (Cause.CANCELLED, True),
        (Cause.CONTAINER_LOST, False),
        (Cause.WRONG, False),
    ],
)
def test_records_are_kept_whose_node_may_not_have_written_them(cause: Cause, kept: bool) -> None:
    async def test(scene: Scene) -> None:
        ended = scene.ended(cause)
        scene.recovery.ended(ended)
        await scene.settle()
        assert scene.records.kept == ([ended] if kept else [])
        assert scene.observer.records == [ended]

    run(test)


def test_the_index_is_written_when_a_segment_is_whole() -> None:
    async def test(scene: Scene) -> None:
        for number in range(7):
            ended = scene.ended(Cause.NONE).model_copy(update={"attempt": f"{number}"})
            scene.recovery.ended(ended)
        await scene.settle()
        assert scene.records.index == [f"{number}" for number in range(7)]
        assert scene.records.indexed > 0

    run(test)
