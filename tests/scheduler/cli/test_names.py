from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import UsageFault
from scheduler.cli.names import find_attempt, find_planned, find_sweep, list_sweeps
from tests.scheduler.cli.builders import FakeDriver, World
from workers.contract.base import FormatError
from workers.storage import Store, open_store

OLD, NEW, OTHER = "b-20260101T000000Z", "b-20260202T000000Z", "a-20260303T000000Z"
FIRST, SECOND = "ab" * 16, "ab12" + "0" * 28


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = open_store(f"file://{tmp_path}")
    for sweep in (OLD, NEW, OTHER):
        made.put(f"sweeps/{sweep}/lock-1.json", b"{}")
    made.put(f"sweeps/{OLD}/lock-2.json", b"{}")
    made.put(f"sweeps/{OLD}/attempts/ab/{FIRST}/result.json", b"{}")
    made.put(f"sweeps/{OLD}/tries/ab/{FIRST}/1-1/try.json", b"{}")
    made.put(f"sweeps/{OLD}/tries/ab/{SECOND}/1-2/try.json", b"{}")
    return made


def test_sweeps_are_listed_by_their_start_and_not_by_their_name(store: Store) -> None:
    assert list_sweeps(store) == [OLD, NEW, OTHER]


@pytest.mark.parametrize(
    ("name", "sweep"), [("latest", OTHER), (OLD, OLD), ("a", OTHER), ("b-202602", NEW)]
)
def test_an_id_a_unique_prefix_or_latest_name_a_sweep(store: Store, name: str, sweep: str) -> None:
    assert find_sweep(store, name) == sweep


@pytest.mark.parametrize(
    ("name", "message"), [("b-", "may be any of"), ("b-20260103T000000Z", "did you mean")]
)
def test_a_name_that_means_none_or_several_is_refused(
    store: Store, name: str, message: str
) -> None:
    with pytest.raises(UsageFault, match=message):
        find_sweep(store, name)


def test_an_empty_store_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="no sweep in this store yet"):
        find_sweep(open_store(f"file://{tmp_path / 'empty'}"), "latest")


@pytest.mark.parametrize(("name", "attempt"), [("aba", FIRST), ("ab1", SECOND), (SECOND, SECOND)])
def test_a_prefix_names_an_attempt_of_any_sweep(store: Store, name: str, attempt: str) -> None:
    assert find_attempt(store, name, None) == (OLD, attempt)


@pytest.mark.parametrize(
    ("name", "sweep", "message"),
    [
        ("ab", None, "may be any of"),
        ("ff", None, "no attempt that has run"),
        ("aba", "a", "no attempt that has run"),
        ("a", None, "2 to 32 hex digits"),
        ("latest", None, "`apiary serve` list them"),
        ("../x", None, "2 to 32 hex digits"),
    ],
)
def test_an_attempt_that_is_not_meant_alone_is_refused(
    store: Store, name: str, sweep: str | None, message: str
) -> None:
    with pytest.raises(UsageFault, match=message):
        find_attempt(store, name, sweep)


def test_a_planned_attempt_is_found_beside_a_sweep_that_cannot_be_read(
    world: World, driver: FakeDriver
) -> None:
    run_cli(["run", str(world.sweep)])
    plan = driver.calls[0]["plan"]
    later = "a-20990303T000000Z"
    world.store.put(f"sweeps/{later}/lock-1.json", b"{")
    world.store.put("sweeps/left-over/x", b"")
    attempt = plan.attempts[0].attempt
    assert find_planned(world.store, attempt, None).sweep == plan.sweep
    with pytest.raises(FormatError, match=later):
        find_planned(world.store, attempt, later)
