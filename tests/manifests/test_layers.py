"""The shipped data set by its layers: how often each task is run when nobody says."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.manifest import ManifestError, Overrides, load_sweep, load_task, sweep_from_flags
from scheduler.plan import Plan, make_plan
from tests.manifests.task_verifiers import MANIFESTS, NAMES, TASKS

SWEEP = MANIFESTS / "sweeps" / "all-tasks.yaml"
CONDITION = MANIFESTS / "conditions" / "scripted-solver.yaml"
ENDPOINTS = str(MANIFESTS.parent / "deploy" / "endpoints" / "scripted.json")
STORE = "file:///nowhere"
STARTED = datetime(2026, 8, 30, 12, tzinfo=UTC)


def planned(**flags: object) -> Plan:
    """The plan of a sweep from flags over the whole data set."""
    overrides = Overrides(endpoint_config=ENDPOINTS, store=STORE, **flags)  # type: ignore[arg-type]
    sweep = sweep_from_flags(TASKS, (CONDITION,), overrides)
    return make_plan(sweep, started_at=STARTED, environment={})


def counts(plan: Plan) -> list[int]:
    """Attempts of each task, in order of their size."""
    cells = {cell.cell: cell.task.name for cell in plan.cells}
    return sorted(Counter(cells[each.cell] for each in plan.attempts).values())


def test_the_whole_data_set_without_a_word() -> None:
    sweep = load_sweep(SWEEP, Overrides(store=STORE))
    for plan in (make_plan(sweep, started_at=STARTED, environment={}), planned()):
        assert counts(plan) == [1] * 6 + [3] * 4
        assert len(plan.attempts) == 18
        assert {task.bare_name for task in plan.tasks} == set(NAMES)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"layer": "regression"}, [1] * 6),
        ({"layer": "workflow"}, [3] * 4),
        ({"attempts": 2}, [2] * 10),
        ({"layer": "workflow", "attempts": 1}, [1] * 4),
        ({"include": ("user-mention", "cross-*")}, [1, 3]),
    ],
)
def test_a_layer_or_explicit_attempts(flags: dict[str, object], expected: list[int]) -> None:
    assert counts(planned(**flags)) == expected


def test_a_layer_that_matches_no_task_lists_what_there_is() -> None:
    with pytest.raises(ManifestError, match="no task has the layer 'workflow'") as refused:
        planned(layer="workflow", include=("user-*", "memory-*"))
    assert "memory-retrieval (regression), user-mention (regression)" in str(refused.value)


def test_a_task_without_its_fixture_would_be_graded_by_its_containers_state(tmp_path: Path) -> None:
    folder = tmp_path / "user-mention"
    shutil.copytree(TASKS / "user-mention", folder)
    (folder / "fixture.yaml").unlink()
    task = load_task(folder, MANIFESTS / "verifier_kit")
    assert (task.fixture, task.layer) == (None, "regression")
    overrides = Overrides(endpoint_config=ENDPOINTS, store=STORE)
    sweep = sweep_from_flags(folder, (CONDITION,), overrides, MANIFESTS)
    (planned_task,) = make_plan(sweep, started_at=STARTED, environment={}).tasks
    assert (task.freeze, planned_task) == ("agent", task)
