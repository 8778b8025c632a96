from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.lock import LockError, write_lock
from scheduler.plan import Plan
from scheduler.report.collect import collect
from scheduler.retry import Revival, revival_prefix
from tests.scheduler.manifest.builders import plan_of, write_world
from tests.scheduler.report.builders import record
from workers.contract.base import FormatError
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.storage import Store, open_store


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Store, Plan]:
    plan = plan_of(write_world(tmp_path))
    store = open_store(f"file://{tmp_path / 'store'}")
    write_lock(store, plan)
    return store, plan


def put(store: Store, plan: Plan, made: TryRecord, *, counts: bool) -> None:
    document = made.to_json().encode()
    store.put(f"{try_prefix(plan.sweep, made.attempt, made.try_)}/try.json", document)
    if counts:
        store.create(result_key(plan.sweep, made.attempt), document)


def test_every_planned_attempt_stands_in_its_cell(planned: tuple[Store, Plan]) -> None:
    store, plan = planned
    results = collect(store, plan.sweep)
    assert results.sweep == plan.sweep
    assert (results.rule, results.coverage_gate) == ("strict", 0.9)
    assert {a.attempt for cell in results.cells for a in cell.attempts} == {
        each.attempt for each in plan.attempts
    }
    assert (results.planned, results.settled) == (len(plan.attempts), 0)


def test_tries_are_ordered_by_epoch_and_the_commit_counts(planned: tuple[Store, Plan]) -> None:
    store, plan = planned
    name = plan.attempts[0].attempt
    put(store, plan, record(Cause.CONTAINER_LOST, name, 10), counts=False)
    put(store, plan, record(Cause.CONTAINER_LOST, name, 9), counts=False)
    put(store, plan, record(Cause.NONE, name, 11), counts=True)
    found = next(
        a for cell in collect(store, plan.sweep).cells for a in cell.attempts if a.attempt == name
    )
    assert [each.try_ for each in found.tries] == ["1-9", "1-10", "1-11"]
    assert found.result is not None
    assert found.result.try_ == "1-11"


def test_a_commit_without_its_try_is_a_try_nevertheless(planned: tuple[Store, Plan]) -> None:
    store, plan = planned
    made = record(Cause.WRONG, plan.attempts[0].attempt, 1)
    store.create(result_key(plan.sweep, made.attempt), made.to_json().encode())
    found = [a for cell in collect(store, plan.sweep).cells for a in cell.attempts if a.result]
    assert [each.tries for each in found] == [(made,)]


def test_files_beside_the_records_are_not_read(planned: tuple[Store, Plan]) -> None:
    store, plan = planned
    prefix = try_prefix(plan.sweep, plan.attempts[0].attempt, "1-1")
    store.put(f"{prefix}/late.json", b"not read")
    store.put(f"{prefix}/logs/try.json.txt", b"not read")
    # Of inputs the task says what they are called, and the agent what is in them.
    forged = record(Cause.CONTAINER_LOST, plan.attempts[1].attempt, 7).to_json().encode()
    for name in ("inputs/try.json", "logs/try.json", "inputs/1-1/try.json"):
        store.put(f"{prefix}/{name}", forged)
    store.put(f"{try_prefix(plan.sweep, plan.attempts[0].attempt, 'old')}/try.json", forged)
    store.put(f"sweeps/{plan.sweep}/attempts/result.json", b"not read")
    found = collect(store, plan.sweep)
    assert found.settled == 0
    assert not any(attempt.tries for cell in found.cells for attempt in cell.attempts)


def test_a_record_of_another_attempt_is_not_taken_for_one(planned: tuple[Store, Plan]) -> None:
    store, plan = planned
    made = record(Cause.NONE, plan.attempts[0].attempt, 1)
    store.put(result_key(plan.sweep, plan.attempts[1].attempt), made.to_json().encode())
    with pytest.raises(FormatError, match=f"the record of attempt {made.attempt}"):
        collect(store, plan.sweep)


def test_a_sweep_that_is_not_there_is_said(planned: tuple[Store, Plan]) -> None:
    with pytest.raises(LockError, match="no lock of a sweep 'other'"):
        collect(planned[0], "other")


def test_fresh_tries_make_a_dead_attempt_open_again(planned: tuple[Store, Plan]) -> None:
    store, plan = planned
    name = plan.attempts[0].attempt
    for number in (1, 2, 3):
        put(store, plan, record(Cause.CONTAINER_LOST, name, number), counts=False)

    def found_open() -> bool:
        cells = collect(store, plan.sweep).cells
        return next(a.open for cell in cells for a in cell.attempts if a.attempt == name)

    assert not found_open()
    revival = Revival(
        sweep=plan.sweep, generation=2, at="2026-01-01T00:00:00Z", causes=(), attempts=(name,)
    )
    store.put(f"{revival_prefix(plan.sweep)}2.json", revival.to_json().encode())
    assert found_open()
