"""Canaries: their conditions, how many there are, and where they stand among the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.lock import lock_of
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest import ManifestError
from scheduler.manifest.canary import PROFILES
from scheduler.plan import Plan, canary_shares
from tests.scheduler.manifest.builders import fault_lines, plan_of, write, write_task, write_world
from workers.contract.endpoint import Endpoint
from workers.model.profiles import profile_of


def world(root: Path, canary: str, attempts: int = 10) -> Path:
    sweep = write_world(root)
    text = sweep.read_text().replace("attempts: 2", f"attempts: {attempts}")
    return write(sweep, f"{text}canary: {canary}\n")


def places(plan: Plan, kind: str) -> list[int]:
    """Where a kind's attempts stand, counted in attempts of the conditions before them."""
    kinds = {cell.cell: cell.canary for cell in plan.cells}
    found, own = [], 0
    for each in plan.attempts:
        if kinds[each.cell] == kind:
            found.append(own)
        own += kinds[each.cell] is None
    return found


def test_one_for_every_nth_spread_evenly_the_first_before_all(tmp_path: Path) -> None:
    plan = plan_of(world(tmp_path, "{solver: 8, nop: 15}"))
    assert len(plan.attempts) == 40 + 5 + 3
    assert plan.canary_attempts == 8
    assert places(plan, "solver") == [0, 8, 16, 24, 32]
    assert places(plan, "nop") == [0, 13, 26]
    assert plan.canaries == {"canary-solver", "canary-nop"}
    assert plan.conditions == ("one", "two", "canary-nop", "canary-solver")
    counts = {
        (cell.condition.condition, cell.task.bare_name): plan.counts[cell.cell]
        for cell in plan.cells
        if cell.canary
    }
    assert counts == {
        ("canary-solver", "alpha"): 3,
        ("canary-solver", "beta"): 2,
        ("canary-nop", "alpha"): 2,
        ("canary-nop", "beta"): 1,
    }
    cells = {cell.cell: cell for cell in plan.cells}
    shares = canary_shares(cells[each.cell] for each in plan.attempts)
    assert shares == {"canary-solver": 8, "canary-nop": 13}


def test_more_canaries_than_attempts_may_be_asked_for_and_are_one_each(tmp_path: Path) -> None:
    plan = plan_of(world(tmp_path, "{solver: 1}", attempts=1))
    assert plan.canary_attempts == 4
    assert places(plan, "solver") == [0, 1, 2, 3]


def test_the_others_are_planned_as_without_canaries(tmp_path: Path) -> None:
    with_them = plan_of(world(tmp_path, "{solver: 3, nop: 3}"))
    without = plan_of(world(tmp_path, "{}"))
    kinds = {cell.cell: cell.canary for cell in with_them.cells}
    assert [a for a in with_them.attempts if kinds[a.cell] is None] == list(without.attempts)
    assert without.canary_attempts == 0


@pytest.mark.parametrize("kind", PROFILES)
def test_a_canary_is_a_scripted_model_of_the_nodes_own_without_any_limit(
    tmp_path: Path, kind: str
) -> None:
    plan = plan_of(world(tmp_path, f"{{{kind}: 5}}"))
    name = f"canary-{kind}"
    condition = next(cell.condition for cell in plan.cells if cell.canary == kind)
    endpoint = plan.spec.endpoints[name]
    assert condition.endpoints == (name,)
    assert (endpoint.provider, endpoint.base_url) == ("scripted", None)
    assert profile_of(endpoint.model or "") is not None
    assert condition.roster[0].budget.model_dump(exclude_none=True) == {}
    assert condition.trial_budget.max_cost_usd is None
    assert set(condition.prices[name].model_dump(exclude_none=True).values()) == {0.0}


def test_the_lock_says_what_is_a_canary_and_gives_the_same_plan(tmp_path: Path) -> None:
    plan = plan_of(world(tmp_path, "{solver: 8, nop: 15, exclude: [beta]}"))
    lock = lock_of(plan)
    kinds = {each.manifest.condition: each.canary for each in lock.conditions}
    assert kinds == {"one": None, "two": None, "canary-solver": "solver", "canary-nop": "nop"}
    assert {task.bare_name for task in lock.tasks} == {"alpha", "beta"}
    again = plan_from_lock(lock, environment={})
    assert (again.attempts, again.cells, again.canary) == (plan.attempts, plan.cells, plan.canary)
    given = {f"scripted-{n}": Endpoint(provider="scripted") for n in ("one", "two")}
    moved = plan_from_lock(lock, environment={}, endpoints=given)
    assert moved.spec.endpoints["canary-solver"].model == "scripted-solver"


def test_its_own_globs_choose_among_the_sweeps_tasks(tmp_path: Path) -> None:
    plan = plan_of(world(tmp_path, "{solver: 8, include: [bet*]}"))
    assert {cell.task.bare_name for cell in plan.cells if cell.canary} == {"beta"}


@pytest.mark.parametrize(
    ("canary", "told"),
    [
        ("{solvr: 5}", "8: canary.solvr: unknown field: no such field here (did you mean 'solver'"),
        ("{solver: 0}", "8: canary.solver: expected a number of at least 1, found 0"),
        ("{oracle: 5}", "8: canary.oracle: an oracle plays a task's solution/solve.sh; without"),
        ("{nop: 5, include: [x]}", "8: canary.include[0]: no task of the sweep matches 'x'; it"),
        ("{nop: 5, exclude: ['*a']}", "8: canary: its globs leave no task of the sweep"),
    ],
)
def test_refuses(tmp_path: Path, canary: str, told: str) -> None:
    with pytest.raises(ManifestError) as caught:
        plan_of(world(tmp_path, canary))
    (fault,) = fault_lines(caught.value, tmp_path)
    assert fault.startswith(f"manifests/sweeps/small.yaml:{told}"), fault


def with_solutions(root: Path, *names: str, native: bool = False) -> None:
    """Gives tasks what an oracle plays, and takes what a relay grades."""
    for name in names:
        write(root / "manifests/tasks" / name / "solution/solve.sh", "#!/bin/sh\n")
        if not native:
            (root / "manifests/tasks" / name / "fixture.yaml").unlink()


def test_an_oracle_plays_harbor_tasks_and_asks_no_model(tmp_path: Path) -> None:
    sweep = world(tmp_path, "{oracle: 5, nop: 5, include: [alpha]}")
    with_solutions(tmp_path, "alpha")
    plan = plan_of(sweep)
    cells = {cell.canary: cell for cell in plan.cells if cell.canary}
    assert set(cells) == {"oracle", "nop"}
    assert not any(name.startswith("canary-") for name in plan.spec.endpoints)
    assert [cells[kind].played(plan.spec.agent) for kind in ("oracle", "nop")] == ["oracle", "nop"]
    again = plan_from_lock(lock_of(plan), environment={})
    assert (again.cells, again.spec) == (plan.cells, plan.spec)


def test_a_silent_canary_has_a_model_only_where_a_relay_is_the_evidence(tmp_path: Path) -> None:
    sweep = world(tmp_path, "{nop: 5}")
    with_solutions(tmp_path, "alpha")
    plan = plan_of(sweep)
    played = {
        cell.task.bare_name: cell.played(plan.spec.agent) for cell in plan.cells if cell.canary
    }
    assert played == {"alpha": "nop", "beta": None}
    assert plan.spec.endpoints["canary-nop"].model == "scripted-silent"


def test_an_oracle_says_nothing_on_a_relay(tmp_path: Path) -> None:
    sweep = world(tmp_path, "{oracle: 5}")
    with_solutions(tmp_path, "alpha", "beta", native=True)
    with pytest.raises(ManifestError, match="'oracle' says nothing on a relay, and these tasks"):
        plan_of(sweep)


def test_names_of_canaries_are_taken(tmp_path: Path) -> None:
    sweep = world(tmp_path, "{solver: 5}")
    path = tmp_path / "manifests/conditions/one.yaml"
    write(path, path.read_text().replace("condition: one", "condition: canary-solver"))
    write(
        tmp_path / "deploy/endpoints/scripted.json",
        '{"scripted-one": {"provider": "scripted"}, "scripted-two": {"provider": "scripted"},\n'
        '"canary-solver": {"provider": "scripted"}}',
    )
    with pytest.raises(ManifestError) as caught:
        plan_of(sweep)
    first, second = fault_lines(caught.value, tmp_path)
    assert first.endswith("condition: 'canary-solver' is a canary's name")
    assert second.endswith("canary-solver: 'canary-solver' is the endpoint of a canary")


def test_a_faulty_task_is_told_once(tmp_path: Path) -> None:
    sweep = world(tmp_path, "{solver: 5}")
    folder = write_task(tmp_path / "manifests", "alpha")
    write(folder / "instruction.md", "")
    with pytest.raises(ManifestError) as caught:
        plan_of(sweep)
    assert len(caught.value.faults) == 1


def test_tasks_without_a_fixture_have_no_scripted_canary(tmp_path: Path) -> None:
    sweep = world(tmp_path, "{solver: 8}")
    (tmp_path / "manifests/tasks/beta/fixture.yaml").unlink()
    plan = plan_of(sweep)
    assert {cell.task.bare_name for cell in plan.cells if cell.canary} == {"alpha"}
    (tmp_path / "manifests/tasks/alpha/fixture.yaml").unlink()
    with pytest.raises(
        ManifestError, match=r"canary\.solver: the scripted models speak on a relay"
    ):
        plan_of(sweep)
