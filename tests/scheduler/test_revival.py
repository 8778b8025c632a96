"""Fresh tries for dead attempts: over several drivers, on a real file store."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from scheduler.commit import Ledger, Rebuilt
from scheduler.driver import drive
from scheduler.retry import DeadRetry, Revival, Spent, revival_prefix
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd
from tests.scheduler.builders import SWEEP
from tests.scheduler.fakes import FakeNode, FakeObserver
from tests.scheduler.test_commit import PLANNED, tried, write_result, write_try
from tests.scheduler.test_driver import Nodes, SmallPlan, plan_of, results, sealing
from workers.contract.outcome import Cause
from workers.contract.spec import Epoch, Lease
from workers.storage import Store, StoreError, open_store

MAX_TRIES = 2


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


def rebuild(store: Store, generation: int, retry: DeadRetry | None = None) -> Rebuilt:
    async def opened() -> Rebuilt:
        async with asyncio.timeout(20.0), Ledger(store, SWEEP) as ledger:
            return await ledger.rebuild(PLANNED, generation, retry=retry, max_tries=MAX_TRIES)

    return asyncio.run(opened())


def revivals(store: Store) -> list[Revival]:
    keys = store.keys(revival_prefix(SWEEP))
    return [Revival.from_json(store.get(key), key) for key in keys]


def killed(store: Store, place: int, *causes: Cause) -> str:
    """An attempt with tries that ended so."""
    for counter, cause in enumerate(causes, 1):
        write_try(store, tried(place, Epoch(1, 10 * place + counter), cause))
    return PLANNED[place].attempt


def test_a_revival_holds_for_every_later_driver(store: Store) -> None:
    dead = killed(store, 0, Cause.NODE_LOST, Cause.CONTAINER_LOST)
    once = killed(store, 1, Cause.VERIFIER_CRASH, Cause.VERIFIER_CRASH)
    alive = killed(store, 2, Cause.NODE_LOST)
    write_result(store, tried(3, Epoch(1, 99), Cause.WRONG))
    found = rebuild(store, 2, DeadRetry())
    expected = {dead: Spent(0, 0, 2), once: Spent(0, 0, 2), alive: Spent(1, 0)}
    assert (found.revived, dict(found.spent)) == (2, expected)
    assert list(found.committed) == [PLANNED[3].attempt]
    (record,) = revivals(store)
    assert record.attempts == tuple(sorted((dead, once)))
    assert (record.generation, record.causes) == (2, ())

    # A plain resume sees what the last one saw, and counts what was tried since.
    assert rebuild(store, 3).spent == expected
    write_try(store, tried(0, Epoch(3, 1), Cause.NODE_LOST))
    # A try of before that turns up late changes nothing.
    write_try(store, tried(0, Epoch(1, 70), Cause.NODE_LOST))
    assert rebuild(store, 4).spent[dead] == Spent(1, 0, 3)
    write_try(store, tried(0, Epoch(4, 1), Cause.NODE_LOST))
    assert rebuild(store, 5).spent[dead] == Spent(2, 0, 3)
    assert rebuild(store, 6, DeadRetry()).spent[dead] == Spent(0, 0, 5)
    assert len(revivals(store)) == 2
    assert len(list(store.keys(f"sweeps/{SWEEP}/tries/"))) == 2 * 9


def test_causes_limit_it_to_attempts_whose_last_try_had_one(store: Store) -> None:
    first = killed(store, 0, Cause.NODE_LOST, Cause.CONTAINER_LOST)
    second = killed(store, 1, Cause.CONTAINER_LOST, Cause.NODE_LOST)
    found = rebuild(store, 2, DeadRetry(frozenset({Cause.NODE_LOST})))
    assert found.spent == {first: Spent(2, 0), second: Spent(0, 0, 2)}
    assert revivals(store)[0].causes == (Cause.NODE_LOST,)


def test_where_nothing_is_dead_nothing_is_written(store: Store) -> None:
    killed(store, 0, Cause.NODE_LOST)
    assert rebuild(store, 2, DeadRetry()).revived == 0
    assert revivals(store) == []


def test_a_record_of_this_driver_that_it_did_not_write_is_an_error(store: Store) -> None:
    killed(store, 0, Cause.NODE_LOST, Cause.NODE_LOST)
    rebuild(store, 2, DeadRetry())
    killed(store, 1, Cause.NODE_LOST, Cause.NODE_LOST)
    with pytest.raises(StoreError, match=r"operators/2\.json: it is there already"):
        rebuild(store, 2, DeadRetry())


def test_a_record_that_cannot_be_read_is_named(store: Store) -> None:
    killed(store, 0, Cause.NODE_LOST, Cause.NODE_LOST)
    store.put(f"{revival_prefix(SWEEP)}2.json", b"{}")
    with pytest.raises(StoreError, match=r"operators/2\.json"):
        rebuild(store, 3)


def go(
    plan: SmallPlan, folder: Path, node: FakeNode, retry: DeadRetry | None = None
) -> tuple[SweepEnd, FakeObserver]:
    observer = FakeObserver()

    async def bounded() -> SweepEnd:
        async with asyncio.timeout(20.0):
            return await drive(
                plan,
                plan.spec.store,
                n_concurrent=None,
                ray_address=None,
                observer=observer,
                stop=StopSignal(),
                home=folder,
                open_nodes=Nodes([node]),
                retry=retry,
            )

    return asyncio.run(bounded()), observer


@pytest.mark.long
def test_dead_attempts_are_tried_again_on_request_and_nothing_else_is(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    store = open_store(plan.spec.store)
    bad = {each.attempt for each in plan.attempts[:3]}
    tries = Counter[str]()

    def cause(lease: Lease) -> Cause:
        tries[lease.attempt] += 1
        return Cause.CONTAINER_LOST if lease.attempt in bad else Cause.WRONG

    def node() -> FakeNode:
        return FakeNode("n1", sealing(store, cause))

    end, _ = go(plan, tmp_path, node())
    assert (end.state, end.revived) == ("settled", 0)
    before = results(plan)
    assert set(before) == {each.attempt for each in plan.attempts} - bad

    end, _ = go(plan, tmp_path, node())
    assert end.idle
    end, observer = go(plan, tmp_path, node(), DeadRetry(frozenset({Cause.DISK_FULL})))
    assert end.idle
    assert "dead attempts that get fresh tries: 0" in observer.notes

    end, observer = go(plan, tmp_path, node(), DeadRetry(frozenset({Cause.CONTAINER_LOST})))
    assert (end.state, end.revived) == ("settled", 3)
    assert "dead attempts that get fresh tries: 3" in observer.notes
    assert {tries[attempt] for attempt in bad} == {4}
    # The new tries are spent too: they are dead again, for this driver and the next.
    assert go(plan, tmp_path, node())[0].idle

    bad.clear()
    end, _ = go(plan, tmp_path, node(), DeadRetry())
    assert end.revived == 3
    after = results(plan)
    assert len(after) == len(plan.attempts)
    assert {attempt: after[attempt] for attempt in before} == before
    assert tries.total() == len(before) + 3 * 5
