"""What a report costs: collecting and scoring a sweep, against reading the same files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from scheduler.bench.figure import Figure
from scheduler.bench.simulated import Records, lay_results
from scheduler.bench.simulated_sweep import Task, Timer, make
from scheduler.bench.turns import Turns, figures
from scheduler.lock import write_lock
from scheduler.report.collect import collect
from scheduler.report.page import write_report
from scheduler.report.score import score
from workers.storage import open_store

Say = Callable[[str], None]


def measure_report(
    manifests: Path, attempts: int, rounds: int, seed: int, say: Say
) -> list[Figure]:
    """Results from a file store to numbers, and to the page; CPU seconds.

    Args:
        manifests: the folder of the project.
        attempts: of the sweep; ten tasks under five conditions.
        rounds: how often all of it is measured, by turns.
        seed: of the attempts' ends.
        say: hears what is done.
    """
    numbers = Turns("collect and score", "s", "reading the same files")
    page = Turns("the same, and the page", "s", "reading the same files")
    folder = Path(tempfile.mkdtemp(prefix="apiary-bench-"))
    try:
        task = Task(
            what="plan",
            manifests=str(manifests),
            store=(folder / "store").as_uri(),
            folder=str(folder),
            attempts=attempts,
            nodes=1,
            seed=seed,
        )
        plan, store = make(task), open_store(task.store)
        write_lock(store, plan)
        records = Records(plan.sweep, {cell.cell: cell for cell in plan.cells}, seed)
        lay_results(plan, records, folder / "store", 0)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}: {len(plan.attempts):,} results")
            bare, scoring, writing = Timer(), Timer(), Timer()
            with bare.running():
                _read(folder / "store" / "sweeps" / plan.sweep / "attempts")
            with scoring.running():
                results = collect(store, plan.sweep)
                summary = score(results)
            with writing.running():
                write_report(store, results, summary)
            numbers.add(scoring.cpu_s, bare.cpu_s)
            page.add(scoring.cpu_s + writing.cpu_s, bare.cpu_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures([numbers, page])


def _read(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            Path(place, name).read_bytes()
