from __future__ import annotations

import itertools
import time
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.commit import Rebuilt
from scheduler.driver import fill_queue
from scheduler.manifest import ManifestError, Overrides, load_sweep
from scheduler.plan import BaseImage, PlannedAttempt, lay_out, make_plan
from tests.scheduler.manifest.builders import (
    STARTED,
    plan_of,
    write_task,
    write_world,
)
from workers.contract.condition import Condition, Generation, PromptFile, RosterEntry
from workers.contract.spec import CellSpec, attempt_id, cell_id
from workers.contract.task import Task

ROOT = Path(__file__).parents[2]


def test_a_plan_has_cells_attempts_and_a_spec(tmp_path: Path) -> None:
    plan = plan_of(write_world(tmp_path))
    assert plan.sweep == plan.spec.sweep == "small-20260830T120005Z"
    assert plan.started_at == "2026-08-30T12:00:05Z"
    assert plan.conditions == ("one", "two")
    assert [task.bare_name for task in plan.tasks] == ["alpha", "beta"]
    assert set(plan.counts.values()) == {2}
    assert len(plan.attempts) == 2 * 2 * 2
    assert plan.spec.network == "sealed"
    assert plan.spec.store == "file:///nowhere"
    assert set(plan.spec.endpoints) == {"scripted-one", "scripted-two"}
    assert plan.archives.keys() == {task.digest for task in plan.tasks}
    assert plan.warnings == ()


def test_ids_are_those_of_the_contract(tmp_path: Path) -> None:
    plan = plan_of(write_world(tmp_path))
    cells = {cell.cell: cell for cell in plan.cells}
    for attempt, cell, index in plan.attempts:
        spec = cells[cell]
        assert cell == cell_id(spec.condition.digest, spec.task.digest)
        expected = attempt_id(plan.sweep, spec.condition.digest, spec.task.digest, index)
        assert attempt == expected
    assert len({attempt.attempt for attempt in plan.attempts}) == len(plan.attempts)


def test_conditions_take_turns_and_every_first_attempt_comes_before_a_second(
    tmp_path: Path,
) -> None:
    plan = plan_of(write_world(tmp_path))
    names = {cell.cell: cell.condition.condition for cell in plan.cells}
    assert [names[attempt.cell] for attempt in plan.attempts] == ["one", "two"] * 4
    assert [attempt.index for attempt in plan.attempts] == [0] * 4 + [1] * 4


def test_without_attempts_each_task_takes_its_layers(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    sweep.write_text(sweep.read_text().replace("attempts: 2\n", ""))
    plan = plan_of(sweep)
    counts = {cell.task.bare_name: plan.counts[cell.cell] for cell in plan.cells}
    assert counts == {"alpha": 1, "beta": 3}
    assert len(plan.attempts) == 2 * (1 + 3)


def test_the_start_is_utc_and_must_be_aware(tmp_path: Path) -> None:
    sweep = load_sweep(write_world(tmp_path))
    east = datetime(2026, 8, 30, 14, 0, 5, 999, tzinfo=timezone(timedelta(hours=2)))
    plan = make_plan(sweep, started_at=east, environment={})
    assert plan.sweep == "small-20260830T120005Z"
    with pytest.raises(ValueError, match="aware"):
        make_plan(sweep, started_at=datetime(2026, 8, 30), environment={})  # noqa: DTZ001


def test_base_image_and_concurrency_are_recorded(tmp_path: Path) -> None:
    base = BaseImage(reference="base:local", digest="sha256:ab")
    plan = make_plan(
        load_sweep(write_world(tmp_path)),
        started_at=STARTED,
        environment={},
        base_image=base,
        n_concurrent=3,
    )
    assert plan.spec.base_image == "base:local"
    assert plan.base_image == base
    assert plan.profile.n_concurrent == 3


def test_the_demonstration_is_36_attempts_and_needs_no_key() -> None:
    sweep = load_sweep(ROOT / "manifests/sweeps/demo.yaml")
    plan = make_plan(sweep, started_at=STARTED, environment={})
    assert (len(plan.cells), len(plan.attempts)) == (12, 36)
    assert plan.conditions == ("scripted-solver", "scripted-sloppy", "scripted-refuser")
    assert {task.bare_name for task in plan.tasks} == {
        "reply-to-thread", "user-mention", "memory-retrieval", "read-named-path-outside-workspace",
    }  # fmt: skip
    assert plan.spec.network == "sealed"
    assert plan.warnings == ()


def test_the_large_sweep_is_a_thousand_attempts_and_needs_no_key() -> None:
    sweep = load_sweep(ROOT / "manifests/sweeps/large-k.yaml")
    plan = make_plan(sweep, started_at=STARTED, environment={})
    assert (len(plan.tasks), len(plan.conditions), len(plan.attempts)) == (10, 5, 1000)
    assert plan.warnings == ()


def cells_of(count: int, conditions: int, task: Task) -> list[CellSpec]:
    """Cells without files: tasks by another digest, conditions by another name."""
    entry = RosterEntry(
        id="solo",
        kind="orchestrator",
        role="solo",
        count=1,
        endpoint="e",
        model_revision="r",
        prompt=PromptFile(path="p", sha256="0" * 64),
        generation=Generation(),
    )
    parts = [
        Condition.model_validate(
            {
                "condition": f"c{number}",
                "roster": (entry,),
                "prices": {"e": PRICE},
                "trial_budget": {"timeout_seconds": 1},
            }
        )
        for number in range(conditions)
    ]
    tasks = [task.model_copy(update={"digest": f"{number:064x}"}) for number in range(count)]
    return [
        CellSpec(cell=cell_id(part.digest, each.digest), task=each, condition=part, prompts={})
        for each in tasks
        for part in parts
    ]


def test_the_queue_leases_canaries_where_the_plan_has_them(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    text = sweep.read_text().replace("attempts: 2", "attempts: 20")
    sweep.write_text(f"{text}canary: {{solver: 10}}\n")
    plan = plan_of(sweep)
    cells = {cell.cell: cell for cell in plan.cells}
    queue = fill_queue(plan, cells, Rebuilt({}, {}), 1)
    leased = [lease for _ in range(11) for lease in queue.lease("n", 8, 0.0)]
    assert len(leased) == len(plan.attempts) == 88
    kinds = [cells[lease.cell].canary for lease in leased]
    planned = [cells[each.cell].canary for each in plan.attempts]
    assert kinds == planned
    assert [place for place, kind in enumerate(kinds) if kind] == list(range(0, 88, 11))


PRICE = {
    "input_per_million_usd": 0.0,
    "cached_input_per_million_usd": 0.0,
    "output_per_million_usd": 0.0,
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return plan_of(write_world(tmp_path_factory.mktemp("world"))).tasks[0]


@given(
    tasks=st.integers(1, 4),
    conditions=st.integers(1, 3),
    counts=st.lists(st.integers(1, 5), min_size=4, max_size=4),
)
def test_every_cell_has_its_attempts_once_in_turns(
    task: Task, tasks: int, conditions: int, counts: list[int]
) -> None:
    cells = cells_of(tasks, conditions, task)
    wanted = {cell.cell: counts[int(cell.task.digest, 16)] for cell in cells}
    attempts = list(lay_out("s", cells, wanted))
    assert Counter(attempt.cell for attempt in attempts) == wanted
    assert len({attempt.attempt for attempt in attempts}) == len(attempts)
    assert [attempt.index for attempt in attempts] == sorted(attempt.index for attempt in attempts)
    names = {cell.cell: cell.condition.condition for cell in cells}
    seen = Counter[str]()
    for attempt in attempts:
        seen[names[attempt.cell]] += 1
        shares = [seen[f"c{number}"] for number in range(conditions)]
        assert max(shares) - min(shares) <= 1


@given(tasks=st.integers(1, 3), k=st.integers(1, 9), canaries=st.integers(1, 30))
def test_canaries_are_spread_evenly_and_change_nothing_else(
    task: Task, tasks: int, k: int, canaries: int
) -> None:
    own = cells_of(tasks, 2, task)
    extra = own[-1].model_copy(update={"cell": "canary", "canary": "nop"})
    counts = {cell.cell: k for cell in own}
    attempts = list(lay_out("s", [*own, extra], {**counts, "canary": canaries}))
    assert [each for each in attempts if each.cell != "canary"] == list(lay_out("s", own, counts))
    places = [place for place, each in enumerate(attempts) if each.cell == "canary"]
    assert len(places) == canaries
    assert places[0] == 0
    ends = [*places, len(attempts)]
    gaps = [after - before for before, after in itertools.pairwise(ends)]
    assert max(gaps) - min(gaps) <= 1


@pytest.mark.long
def test_a_hundred_thousand_attempts_are_laid_out_in_seconds(task: Task) -> None:
    cells = cells_of(1000, 5, task)
    started = time.process_time()
    attempts = list(lay_out("s", cells, {cell.cell: 20 for cell in cells}))
    assert len(attempts) == 100_000
    assert type(attempts[0]) is PlannedAttempt
    assert time.process_time() - started < 5


def test_a_large_data_set_is_planned_from_its_files(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    for number in range(40):
        write_task(sweep.parents[1], f"many-{number}")
    plan = make_plan(load_sweep(sweep, Overrides(attempts=100)), started_at=STARTED, environment={})
    assert len(plan.attempts) == 42 * 2 * 100


def test_now_is_a_fine_start(tmp_path: Path) -> None:
    plan = make_plan(
        load_sweep(write_world(tmp_path)), started_at=datetime.now(UTC), environment={}
    )
    assert plan.sweep.startswith("small-20")


def test_a_sweep_that_no_machine_could_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = write_world(tmp_path)
    planned = sum(plan_of(sweep).counts.values())
    monkeypatch.setattr("scheduler.plan.MOST_ATTEMPTS", planned)
    assert len(plan_of(sweep).attempts) == planned
    monkeypatch.setattr("scheduler.plan.MOST_ATTEMPTS", planned - 1)
    with pytest.raises(ManifestError, match=f"{planned} attempts in all, expected at most"):
        plan_of(sweep)
