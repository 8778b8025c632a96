from __future__ import annotations

from pathlib import Path

from scheduler.report.attempt import read_attempt
from tests.scheduler.cli.builders import write_try
from tests.scheduler.report.builders import SWEEP, record
from tests.workers.store_doubles import file_store
from workers.contract.outcome import Cause
from workers.contract.result import try_prefix

ATTEMPT = "ab" * 16


def test_what_is_no_try_is_passed_over(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    write_try(store, record(Cause.CONTAINER_LOST, ATTEMPT, 1))
    write_try(store, record(Cause.NONE, ATTEMPT, 10))
    for name in ("notes.txt", ".DS_Store", "old/try.json", "1-1.bak/try.json", "1-1-1/x", "-1/x"):
        store.put(try_prefix(SWEEP, ATTEMPT, name), b"{")
    found = read_attempt(store, SWEEP, ATTEMPT)
    assert list(found.tries) == list(found.files) == ["1-1", "1-10"]
    assert found.chosen(None) == "1-10"


def test_a_commit_stands_for_the_record_that_its_try_has_lost(tmp_path: Path) -> None:
    store, made = file_store(tmp_path), record(Cause.NONE, ATTEMPT, 1)
    write_try(store, made)
    prefix = try_prefix(SWEEP, ATTEMPT, "1-1")
    store.put(f"{prefix}/evidence.json", b"{}")
    store.delete(f"{prefix}/try.json")
    assert read_attempt(store, SWEEP, ATTEMPT).tries == {"1-1": made}
