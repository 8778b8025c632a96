"""Who is at work is judged by what this reader sees move, not by clocks."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

import scheduler.cli.running
from scheduler.cli import run_cli
from scheduler.process import this_process
from scheduler.watch.sweep_reader import SILENT_S, SweepReader
from tests.scheduler.cli.builders import FakeDriver, make_world
from tests.scheduler.report.generated import make_lock, write
from tests.scheduler.watch.builders import SWEEP, claim, put, sweep_document
from tests.workers.store_doubles import Moody, file_store
from workers.contract.base import FormatError
from workers.contract.outcome import Cause
from workers.storage import Store, StoreError


def reader(store: Store | Moody, now: list[float]) -> SweepReader:
    return SweepReader(cast(Store, store), SWEEP, clock=lambda: now[0])


def test_a_driver_whose_document_stands_still_is_not_at_work(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [0.0]
    claim(store, 1)
    put(store, sweep_document(time="1999-01-01T00:00:00Z"))
    read = reader(store, now)
    assert read.look().standing == "running"
    now[0] += SILENT_S - 1
    assert read.look().standing == "running"
    now[0] += 2
    moment = read.look()
    assert (moment.standing, moment.still_s) == ("silent", SILENT_S + 1)
    put(store, sweep_document(number=2))
    assert read.look().standing == "running"


def test_a_process_that_is_gone_from_this_machine_is_known_at_once(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    machine, pid, _ = this_process().rsplit("/", 2)
    claim(store, 1, process=f"{machine}/{pid}/1")
    put(store, sweep_document())
    assert reader(store, [0.0]).look().standing == "silent"


def test_an_end_is_an_end_until_another_driver_begins(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [0.0]
    put(store, sweep_document(state="interrupted", reason="the operator stopped the sweep"))
    read = reader(store, now)
    assert read.look().standing == "ended"
    claim(store, 2)
    now[0] += 6.0
    moment = read.look()
    assert (moment.standing, moment.driver) == ("taken_up", "driver 2 on host box")
    put(store, sweep_document(generation=2, state="starting"))
    now[0] += 6.0
    assert read.look().standing == "running"


def test_a_document_of_an_older_driver_is_not_believed(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [0.0]
    claim(store, 2)
    put(store, sweep_document(generation=2))
    read = reader(store, now)
    read.look()
    put(store, sweep_document(generation=1, number=99))
    assert read.look().live.generation == 2


def test_a_store_that_fails_leaves_what_was_known(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [0.0]
    moody = Moody(store)
    moody.refuses = True
    read = reader(moody, now)
    with pytest.raises(StoreError):
        read.look()
    moody.refuses = False
    claim(store, 1)
    put(store, sweep_document())
    read.look()
    moody.refuses = True
    now[0] += 3.0
    moment = read.look()
    assert (moment.fault, moment.standing, moment.still_s) == ("the store is down", "running", 3.0)


def test_a_record_that_is_broken_while_it_is_watched_leaves_what_was_known(tmp_path: Path) -> None:
    store, now, lock = file_store(tmp_path), [0.0], make_lock()
    store.put(f"sweeps/{lock.sweep}/lock-1.json", lock.to_json().encode())
    read = SweepReader(store, lock.sweep, clock=lambda: now[0])
    assert read.look().standing == "results"
    cell = lock.cells[0]
    write(store, lock, cell.task, cell.condition, 0, 1, Cause.NONE)
    (key,) = store.keys(f"sweeps/{lock.sweep}/attempts/")
    store.put(key, b'{"half')
    now[0] += 60.0
    moment = read.look()
    assert (moment.standing, key in moment.fault) == ("results", True)
    with pytest.raises(FormatError, match=key):
        SweepReader(store, lock.sweep).look()


@pytest.mark.long
def test_without_a_document_the_results_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(tmp_path, monkeypatch)
    monkeypatch.setattr(scheduler.cli.running, "run_sweep", FakeDriver())
    run_cli(["run", str(world.sweep)])
    (sweep,) = world.store.children("sweeps/")
    moment = SweepReader(world.store, sweep).look()
    assert moment.standing == "results"
    assert [(row.passed, row.waiting) for row in moment.live.conditions] == [(4, 0), (4, 0)]
