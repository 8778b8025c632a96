"""Causes that follow from what stores, relays and disks say."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from workers.contract.outcome import Cause
from workers.gateway import GatewayError
from workers.relay import RelayError, RelayRefusedError, RelayUnreachableError
from workers.storage import ClockSkewError, StoreError
from workers.trial.errors import cause_of_relay, cause_of_store, check_room, is_disk_full

LATE = RelayRefusedError("POST /events", 200, "invalid: event timestamp too far from server time")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RelayUnreachableError("no answer"), Cause.RELAY_UNAVAILABLE),
        (LATE, Cause.CLOCK_SKEW),
        (RelayRefusedError("POST /events", 403, "restricted: not a member"), Cause.SEED_FAILED),
        (RelayError("no event to reply to"), Cause.SEED_FAILED),
    ],
)
def test_a_relay_that_is_away_is_told_from_one_that_refuses(
    error: RelayError, cause: Cause
) -> None:
    assert cause_of_relay(error, Cause.SEED_FAILED) is cause


def test_a_store_that_refuses_the_time_is_not_away() -> None:
    assert cause_of_store(ClockSkewError("put")) is Cause.CLOCK_SKEW
    assert cause_of_store(StoreError("put")) is Cause.STORE_UNAVAILABLE


@pytest.mark.parametrize(
    ("number", "full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EISDIR, False)]
)
def test_a_full_disk_is_found_behind_what_it_caused(number: int, full: bool) -> None:
    error = OSError(number, "a reason")
    behind = GatewayError("the ledger is incomplete")
    behind.__cause__ = error
    assert is_disk_full(error) is is_disk_full(behind) is full
    assert not is_disk_full(GatewayError("another"))


def test_there_is_room_where_there_is(tmp_path: Path) -> None:
    check_room(tmp_path)
