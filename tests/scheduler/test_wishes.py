from __future__ import annotations

from pathlib import Path

from scheduler.wishes import STILL_S, Wishes
from tests.scheduler.builders import SWEEP
from tests.workers.store_doubles import file_store
from workers.contract.live import WATCHED_AT_MOST, watched_key, watched_prefix
from workers.storage import Store

A, B = "a" * 32, "b" * 32


def test_a_wish_holds_as_long_as_it_moves(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [100.0]
    wishes = Wishes(SWEEP, lambda: now[0])
    wishes.look(store)
    assert wishes.attempts == ()
    for beat in range(4):
        store.put(watched_key(SWEEP, A), f"beat {beat}".encode())
        wishes.look(store)
        assert wishes.attempts == (A,)
        now[0] += STILL_S - 1
    now[0] += 2
    wishes.look(store)
    assert wishes.attempts == ()
    assert not store.exists(watched_key(SWEEP, A))


def test_one_that_is_taken_back_is_over_at_once(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    wishes = Wishes(SWEEP, lambda: 1.0)
    store.put(watched_key(SWEEP, A), b"1")
    wishes.look(store)
    store.delete(watched_key(SWEEP, A))
    wishes.look(store)
    assert wishes.attempts == ()


def test_names_that_are_no_attempt_are_let_be(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    for name in ("../x", "A" * 32, "a" * 31, "x"):
        if ".." not in name:
            store.put(f"{watched_prefix(SWEEP)}{name}.json", b"1")
    wishes = Wishes(SWEEP, lambda: 1.0)
    wishes.look(store)
    assert wishes.attempts == ()


def test_many_cost_no_more_than_a_few_and_the_newest_come_first(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [1.0]
    wishes = Wishes(SWEEP, lambda: now[0])
    _put(store, range(WATCHED_AT_MOST))
    wishes.look(store)
    assert len(wishes.attempts) == WATCHED_AT_MOST
    now[0] += 1
    store.put(watched_key(SWEEP, B), b"1")
    wishes.look(store)
    assert len(wishes.attempts) == WATCHED_AT_MOST
    assert B in wishes.attempts


def _put(store: Store, numbers: range) -> None:
    for number in numbers:
        store.put(watched_key(SWEEP, f"{number:032x}"), b"1")
