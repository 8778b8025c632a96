"""What the driver finds in the store and writes to it; on a real file store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from scheduler.commit import Ledger, Rebuilt
from scheduler.index import index_prefix
from scheduler.retry import Spent
from tests.scheduler.builders import SWEEP, attempts, cells, record
from workers.contract.outcome import Cause, Verdict
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.contract.spec import Epoch, Lease
from workers.storage import Store, StoreError, open_store

CELLS = cells(tasks=2)
PLANNED = attempts(CELLS, 3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


def tried(place: int, epoch: Epoch, cause: Cause = Cause.NONE) -> TryRecord:
    """How a try of one of the planned attempts ended."""
    planned = PLANNED[place]
    lease = Lease(
        attempt=planned.attempt, index=planned.index, cell=planned.cell, epoch=epoch, term_s=60.0
    )
    return record(CELLS[planned.cell], lease, cause)


def write_try(store: Store, ended: TryRecord) -> None:
    prefix = try_prefix(SWEEP, ended.attempt, ended.try_)
    store.put(f"{prefix}/logs/try.json", b"an agent's file of that name")
    store.put(f"{prefix}/try.json", ended.to_json().encode() + b"\n")


def write_result(store: Store, ended: TryRecord) -> None:
    write_try(store, ended)
    store.create(result_key(SWEEP, ended.attempt), ended.to_json().encode() + b"\n")


def run(store: Store, test: Callable[[Ledger], Coroutine[Any, Any, Any]]) -> Any:
    async def opened() -> Any:
        async with asyncio.timeout(20.0), Ledger(store, SWEEP) as ledger:
            return await test(ledger)

    return asyncio.run(opened())


def rebuild(store: Store, generation: int = 2) -> Rebuilt:
    found = run(store, lambda ledger: ledger.rebuild(PLANNED, generation))
    assert isinstance(found, Rebuilt)
    return found


def test_the_first_driver_finds_nothing_to_rebuild(store: Store) -> None:
    write_result(store, tried(0, Epoch(1, 1)))
    assert rebuild(store, generation=1) == Rebuilt({}, {})


def test_a_commit_is_found_with_its_verdict(store: Store) -> None:
    write_result(store, tried(0, Epoch(1, 1)))
    write_result(store, tried(3, Epoch(1, 2), Cause.AGENT_TIMEOUT))
    found = rebuild(store)
    assert found.committed == {
        PLANNED[0].attempt: Verdict.PASS,
        PLANNED[3].attempt: Verdict.FAIL,
    }
    assert found.spent == {}
    assert found.causes == {
        PLANNED[0].attempt: Cause.NONE,
        PLANNED[3].attempt: Cause.AGENT_TIMEOUT,
    }


def test_an_index_saves_reading_what_it_names(store: Store) -> None:
    named, other = tried(0, Epoch(1, 1)), tried(1, Epoch(1, 2), Cause.WRONG)
    gone = tried(2, Epoch(1, 3))
    write_result(store, named)
    write_result(store, other)

    async def first(ledger: Ledger) -> None:
        ledger.begin(1)
        for ended in (named, gone):
            assert not ledger.counted(ended)
        await ledger.write_index()

    run(store, first)
    # It is not read again, so this is not found out; and what is not there does not count.
    store.put(result_key(SWEEP, named.attempt), b"spoilt")

    async def again(ledger: Ledger, generation: int) -> Rebuilt:
        ledger.begin(generation)
        return await ledger.rebuild(PLANNED, generation)

    expected = {named.attempt: Verdict.PASS, other.attempt: Verdict.FAIL}
    causes = {named.attempt: Cause.NONE, other.attempt: Cause.WRONG}
    found = run(store, lambda ledger: again(ledger, 2))
    assert (found.committed, found.causes) == (expected, causes)
    # What had to be read is in the next segment.
    store.put(result_key(SWEEP, other.attempt), b"spoilt")
    found = run(store, lambda ledger: again(ledger, 3))
    assert (found.committed, found.causes) == (expected, causes)


def test_an_index_line_without_a_cause_has_the_result_read(store: Store) -> None:
    ended = tried(1, Epoch(1, 2), Cause.NO_REPLY)
    write_result(store, ended)
    line = f'{{"attempt": "{ended.attempt}", "verdict": "fail"}}\n'
    store.put(f"{index_prefix(SWEEP)}1-1.jsonl", line.encode())
    assert rebuild(store).causes == {ended.attempt: Cause.NO_REPLY}


def test_the_last_try_tells_the_cause_where_there_is_no_commit(store: Store) -> None:
    write_try(store, tried(0, Epoch(1, 9), Cause.RATE_LIMITED))
    write_try(store, tried(0, Epoch(1, 10), Cause.CONTAINER_LOST))
    assert rebuild(store).causes == {PLANNED[0].attempt: Cause.CONTAINER_LOST}


def test_invalid_tries_that_were_read_are_known(store: Store) -> None:
    write_try(store, tried(0, Epoch(1, 1), Cause.CONTAINER_LOST))

    async def read(ledger: Ledger) -> list[bool]:
        await ledger.rebuild(PLANNED, 2)
        return [ledger.knows(PLANNED[0].attempt, each) for each in ("1-1", "1-2")]

    assert run(store, read) == [True, False]


def test_invalid_tries_are_counted_by_their_blame(store: Store) -> None:
    write_try(store, tried(0, Epoch(1, 1), Cause.CONTAINER_LOST))
    write_try(store, tried(0, Epoch(1, 9), Cause.VERIFIER_CRASH))
    write_try(store, tried(0, Epoch(2, 1), Cause.CANCELLED))
    write_try(store, tried(1, Epoch(1, 2), Cause.CANCELLED))
    assert rebuild(store).spent == {
        PLANNED[0].attempt: Spent(2, 1),
        PLANNED[1].attempt: Spent(0, 0),
    }


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"FEW_ATTEMPTS": 0, "MANY_ATTEMPTS": 0},
        {"FEW_ATTEMPTS": 0, "MANY_ATTEMPTS": 0, "FOLDERS": 0},
        {"FEW_ATTEMPTS": 0, "FOLDERS": 0, "FILES_OF_A_TRY": 0},
    ],
    ids=["one by one", "all at once", "first who has any, all", "first who has any, one by one"],
)
def test_all_ways_of_listing_tries_agree(
    store: Store, bounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, bound in bounds.items():
        monkeypatch.setattr(f"scheduler.commit.{name}", bound)
    write_result(store, tried(0, Epoch(1, 1)))
    write_try(store, tried(1, Epoch(1, 2), Cause.CONTAINER_LOST))
    write_try(store, tried(2, Epoch(1, 3)))
    found = rebuild(store)
    assert found.committed == {
        PLANNED[0].attempt: Verdict.PASS,
        PLANNED[2].attempt: Verdict.PASS,
    }
    assert found.spent == {PLANNED[1].attempt: Spent(1, 0)}


def test_a_finished_try_without_a_commit_is_committed(store: Store) -> None:
    ended = tried(0, Epoch(1, 10), Cause.WRONG)
    write_try(store, tried(0, Epoch(1, 9), Cause.CONTAINER_LOST))
    write_try(store, ended)
    assert rebuild(store).committed == {PLANNED[0].attempt: Verdict.FAIL}
    assert store.get(result_key(SWEEP, ended.attempt)) == ended.to_json().encode() + b"\n"


def test_of_two_finished_tries_the_earlier_one_counts(store: Store) -> None:
    write_try(store, tried(0, Epoch(2, 1), Cause.WRONG))
    write_try(store, tried(0, Epoch(1, 10)))
    assert rebuild(store).committed == {PLANNED[0].attempt: Verdict.PASS}


def test_attempts_that_are_not_planned_are_left_alone(store: Store) -> None:
    stranger = tried(0, Epoch(1, 1)).model_copy(update={"attempt": "f" * 32})
    write_result(store, stranger)
    write_try(store, stranger.model_copy(update={"attempt": "e" * 32}))
    assert rebuild(store) == Rebuilt({}, {})


def test_recover_finds_a_commit_else_a_finished_try_else_nothing(store: Store) -> None:
    committed, finished = tried(0, Epoch(1, 1)), tried(1, Epoch(1, 2), Cause.WRONG)
    write_result(store, committed)
    write_try(store, finished)
    write_try(store, tried(2, Epoch(1, 3), Cause.CONTAINER_LOST))

    async def test(ledger: Ledger) -> list[TryRecord | None]:
        return [await ledger.recover(each.attempt) for each in PLANNED[:4]]

    assert run(store, test) == [committed, finished, None, None]
    assert store.exists(result_key(SWEEP, finished.attempt))


def test_accept_gives_the_commit_that_counts(store: Store) -> None:
    first, second = tried(0, Epoch(1, 1)), tried(0, Epoch(1, 2), Cause.WRONG)

    async def test(ledger: Ledger) -> list[TryRecord]:
        return [await ledger.accept(first), await ledger.accept(second)]

    assert run(store, test) == [first, first]


def test_keep_leaves_what_the_node_wrote(store: Store) -> None:
    theirs, ours = tried(0, Epoch(1, 1), Cause.CANCELLED), tried(0, Epoch(1, 1), Cause.NODE_LOST)
    other = tried(1, Epoch(1, 2), Cause.NODE_LOST)
    write_try(store, theirs)

    async def test(ledger: Ledger) -> None:
        await ledger.keep(ours)
        await ledger.keep(other)

    run(store, test)
    kept = [
        TryRecord.from_json(store.get(f"{try_prefix(SWEEP, r.attempt, r.try_)}/try.json"), "try")
        for r in (ours, other)
    ]
    assert kept == [theirs, other]


def test_a_record_that_is_none_is_a_fault_of_the_store_and_names_its_key(store: Store) -> None:
    key = result_key(SWEEP, PLANNED[0].attempt)
    store.put(key, b"{}")
    with pytest.raises(StoreError, match=key):
        rebuild(store)
    with pytest.raises(StoreError, match=key):
        run(store, lambda ledger: ledger.recover(PLANNED[0].attempt))


def test_a_store_that_does_not_answer_is_given_up(store: Store) -> None:
    let_go = threading.Event()

    class Hanging:
        url = "file:///hanging"

        def create(self, key: str, data: bytes) -> bool:
            return let_go.wait(10.0)

    async def test() -> None:
        hanging: Any = Hanging()
        async with Ledger(hanging, SWEEP, timeout_s=0.05) as ledger:
            await ledger.keep(tried(0, Epoch(1, 1), Cause.NODE_LOST))

    try:
        with pytest.raises(StoreError, match="no answer in"):
            asyncio.run(test())
    finally:
        let_go.set()


def test_a_record_of_another_attempt_is_not_taken_for_one(store: Store) -> None:
    mine, other = PLANNED[0].attempt, PLANNED[1].attempt
    key = result_key(SWEEP, mine)
    store.put(key, tried(1, Epoch(1, 1)).to_json().encode())
    for ask in (lambda: rebuild(store), lambda: run(store, lambda ledger: ledger.recover(mine))):
        with pytest.raises(StoreError, match=f"{key}: it is the record of attempt {other}"):
            ask()


def test_files_that_are_no_tries_are_passed_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("FEW_ATTEMPTS", "MANY_ATTEMPTS"):
        monkeypatch.setattr(f"scheduler.commit.{bound}", 0)
    write_try(store, tried(0, Epoch(1, 1), Cause.CONTAINER_LOST))
    store.put(f"sweeps/{SWEEP}/tries/notes", b"")
    store.put(f"sweeps/{SWEEP}/tries/zz/notes", b"")
    assert set(rebuild(store).spent) == {PLANNED[0].attempt}
