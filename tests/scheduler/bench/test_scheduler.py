"""The scheduler's bench at a small size: what it prints, and the ratios that are promised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.bench.figure import Figure
from scheduler.bench.simulated import FAILED, Records
from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler import builders
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord
from workers.contract.spec import Epoch

SMALL, LARGE, ROUNDS = 1000, 3000, 3


def test_a_simulated_attempt_ends_by_its_seed_as_a_real_one() -> None:
    cells = builders.cells()
    (cell,) = cells
    first, again, other = (Records(builders.SWEEP, cells, seed) for seed in (1, 1, 2))
    names = [f"{number:032x}" for number in range(400)]
    causes = [first.cause(name) for name in names]
    assert causes == [again.cause(name) for name in names]
    assert causes != [other.cause(name) for name in names]
    assert 0.5 < causes.count(Cause.WRONG) / (FAILED * len(names)) < 1.5
    made = TryRecord.from_json(json.dumps(first.record(names[0], 3, cell, Epoch(1, 2))), "record")
    assert (made.attempt, made.index, made.try_, made.cause) == (names[0], 3, "1-2", causes[0])


@pytest.mark.long
def test_what_is_promised_of_the_scheduler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    said = ["bench", "scheduler", "--rounds", str(ROUNDS), "--nodes", "50", "--json"]
    assert run_cli([*said, "--small", str(SMALL), "--attempts", str(LARGE)]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    found = {each.name: each for each in (Figure.from_json(line, "figure") for line in lines)}
    for name in (f"throughput, {LARGE:,}", f"driver, {LARGE:,}", f"plan of {LARGE:,}"):
        assert found[name].ratio is not None
    growth, memory = found["driver, growth"], found[f"memory, {LARGE:,}"]
    # Its neighbours disturb a pair of half a second; a cost that grows shows in every pair.
    assert growth.ratio_low is not None and growth.ratio_low <= 1.2
    assert memory.ratio is not None and memory.ratio < 1
    with_index, without = found["resume, files"], found["resume, files, no index"]
    assert with_index.value < without.value
    left, pages = LARGE // 100, found["resume, S3: listings"].reference
    # Beside the results: the index, the operator's records, and the tries of what is open.
    assert pages == 3
    assert found["resume, S3: listings"].value <= pages + left + 2
