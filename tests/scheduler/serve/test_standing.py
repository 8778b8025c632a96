from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.claim_format import DriverBeat, beat_key
from scheduler.process import this_process
from scheduler.serve.standing import standing_of
from tests.scheduler.test_journal_reading import put as put_lines
from tests.scheduler.watch.builders import SWEEP, claim, put, sweep_document
from tests.workers.store_doubles import file_store
from workers.storage import Store


def ended(store: Store, generation: int = 1) -> None:
    """The driver has said that it ended."""
    beat = DriverBeat(beat=9, ended=True).to_json().encode()
    store.put(beat_key(SWEEP, generation), beat)


@pytest.mark.parametrize(
    ("state", "reason", "text"),
    [
        ("failed", "ClusterError: no Ray", "ended: failed: ClusterError: no Ray"),
        ("infrastructure", "no node could work", "ended: infrastructure: no node could work"),
        ("interrupted", "", "ended: stopped by the operator"),
    ],
)
def test_a_driver_that_has_ended_said_why(
    tmp_path: Path, state: str, reason: str, text: str
) -> None:
    store = file_store(tmp_path)
    claim(store)
    put(store, sweep_document(state=state, reason=reason))
    ended(store)
    assert standing_of(store, SWEEP) == (text, True)


def test_one_that_failed_before_it_showed_anything_is_asked_of_the_journal(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    assert standing_of(store, SWEEP) == ("no driver has begun it", True)
    claim(store, 1)
    put(store, sweep_document(state="interrupted"))
    claim(store, 2)
    ended(store, 2)
    words = "StoreError: read x: it is not the record of a try"
    put_lines(store, "driver", 0, 1, event="driver_failed", generation=2, text=words)
    assert standing_of(store, SWEEP) == (f"ended: {words}", True)


def test_who_is_at_work_is_said_and_who_is_gone(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    claim(store)
    put(store, sweep_document())
    text, is_over = standing_of(store, SWEEP)
    assert text.startswith("driver 1 on host box is at work")
    assert not is_over
    machine, pid, _ = this_process().rsplit("/", 2)
    claim(store, 2, process=f"{machine}/{pid}/1")
    assert standing_of(store, SWEEP).text.startswith("its driver died without a word")
