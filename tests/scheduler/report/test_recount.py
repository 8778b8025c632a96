"""Every number of ``summary.json`` is recomputed by ``recount.py``, which shares no code."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.manifest import Scoring
from scheduler.report.collect import collect
from scheduler.report.page import report_keys
from scheduler.report.score import score
from tests.scheduler.report.generated import condition_of, fill, make_lock
from tests.scheduler.report.recount import differences, main, recount
from workers.contract.spec import cell_id
from workers.storage import open_store

REPORT_S = 10.0
"""Of CPU time, for 1,000 attempts; it takes about one."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "gate", "invalid"), [("strict", 0.9, 0.1), ("valid_only", 0.5, 0.4)]
)
def test_a_small_sweep_is_recounted(tmp_path: Path, rule: str, gate: float, invalid: float) -> None:
    store = open_store(f"file://{tmp_path}")
    scoring = Scoring.model_validate({"rule": rule, "coverage_gate": gate})
    lock = make_lock(conditions=2, attempts=3, canaries=True, scoring=scoring)
    fill(store, lock, invalid=invalid)
    found = json.loads(score(collect(store, lock.sweep)).to_json())
    assert list(differences(recount(tmp_path, lock.sweep), found)) == []


@pytest.mark.long
def test_a_sweep_that_grew_and_whose_condition_changed_is_recounted(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    first = make_lock(conditions=2, attempts=2)
    fill(store, first, invalid=0.2)
    changed = condition_of("condition-1-changed")
    counts = {
        cell_id(digest, task.digest): 3
        for task in first.tasks
        for digest in (first.conditions[0].digest, changed.digest)
    }
    grown = first.model_copy(
        update={"number": 2, "conditions": (first.conditions[0], changed), "attempts": counts}
    )
    fill(store, grown, seed=2, invalid=0.2)
    found = json.loads(score(collect(store, first.sweep)).to_json())
    assert {each["condition"] for each in found["superseded"]} == {"condition-1"}
    assert list(differences(recount(tmp_path, first.sweep), found)) == []


def test_a_difference_is_seen() -> None:
    wanted = {"a": [1.0, {"b": None}], "c": 2}
    assert list(differences(wanted, {"a": [1.0 + 1e-12, {"b": None}], "c": 2})) == []
    found = {"a": [1.1, {"b": 0}], "d": 2}
    assert len(list(differences(wanted, found))) == 4
    assert len(list(differences([1], []))) == 1


@pytest.mark.long
def test_a_thousand_attempts_are_reported_in_time_and_recounted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIARY_STORE", f"file://{tmp_path}")
    store = open_store(f"file://{tmp_path}")
    lock = make_lock(conditions=5, regression=4, workflow=6, attempts=20, canaries=True)
    fill(store, lock)
    started = time.process_time()
    run_cli(["report", lock.sweep])
    assert time.process_time() - started < REPORT_S
    capsys.readouterr()
    assert main([str(tmp_path), lock.sweep]) == 0
    assert capsys.readouterr().out == "1040 attempts recounted, 0 differences\n"
    assert store.exists(report_keys(lock.sweep)[1])
