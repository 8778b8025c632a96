"""What the claims of a sweep's drivers say."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.claim_format import (
    DriverBeat,
    DriverClaim,
    at_work,
    beat_key,
    claim_key,
    last_generation,
    share_nodes,
    unfinished,
)
from scheduler.process import this_process
from tests.scheduler.builders import SWEEP
from workers.storage import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}")


def claim(generation: int = 1, **changes: object) -> DriverClaim:
    values = {"sweep": SWEEP, "generation": generation, "host": "a", "started_at": "2026"}
    return DriverClaim.model_validate({**values, **changes})


def write(store: Store, made: DriverClaim, *, ended: bool = False) -> None:
    store.create(claim_key(SWEEP, made.generation), made.to_json().encode())
    beat = DriverBeat(beat=1, ended=ended)
    store.put(beat_key(SWEEP, made.generation), beat.to_json().encode())


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (("a", "head:6379"), ("b", "head:6379"), True),
        (("a", "head:6379"), ("b", "other:6379"), False),
        (("a", None), ("a", None), False),
        (("a", "auto"), ("b", "auto"), False),
        (("a", "auto"), ("a", "auto"), True),
        (("a", "127.0.0.1:6379"), ("b", "127.0.0.1:6379"), False),
    ],
)
def test_who_shares_nodes(one: tuple[str, str], other: tuple[str, str], shared: bool) -> None:
    first, second = (claim(host=host, ray_address=address) for host, address in (one, other))
    assert share_nodes(first, second) == shared


def test_beats_are_no_claims(store: Store) -> None:
    assert last_generation(store, SWEEP) == 0
    write(store, claim(9))
    write(store, claim(10))
    assert last_generation(store, SWEEP) == 10


def test_who_has_not_ended_is_unfinished(store: Store) -> None:
    write(store, claim(1))
    write(store, claim(2), ended=True)
    store.create(claim_key(SWEEP, 3), b"spoilt")
    assert [each.generation for each in unfinished(store, SWEEP, range(1, 5))] == [1]


def test_a_claim_of_an_older_version_is_read(store: Store) -> None:
    old = f'{{"schema_version":1,"sweep":"{SWEEP}","generation":1,"host":"a","started_at":"2026"}}'
    store.create(claim_key(SWEEP, 1), old.encode())
    assert [each.host for each in unfinished(store, SWEEP, [1])] == ["a"]


def test_the_last_driver_is_at_work_unless_it_ended_or_its_process_did(store: Store) -> None:
    assert at_work(store, SWEEP) is None
    write(store, claim(1, process=this_process()))
    assert at_work(store, SWEEP) == claim(1, process=this_process())
    write(store, claim(2, process=this_process() + "0"))
    assert at_work(store, SWEEP) is None
    write(store, claim(3), ended=True)
    assert at_work(store, SWEEP) is None
