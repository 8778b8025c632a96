# ruff: noqa: E501 - tables of refusals, one a line
"""Sweeps whose agent asks no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.lock import lock_of
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest import ManifestError, Overrides, load_sweep, sweep_from_flags
from scheduler.manifest.made import PLAYED_S, played_condition
from scheduler.plan import make_plan
from tests.scheduler.manifest.builders import STARTED, fault_lines, plan_of, write, write_world

NOWHERE = {"APIARY_STORE": "file:///nowhere"}


def harbor_world(root: Path, agent: str = "oracle") -> Path:
    """A world whose tasks are Harbor's, each with a solution, and a sweep of such an agent."""
    sweep = write_world(root)
    for name in ("alpha", "beta"):
        folder = root / "manifests" / "tasks" / name
        (folder / "fixture.yaml").unlink()
        write(folder / "solution" / "solve.sh", "#!/bin/sh\n")
    sweep.write_text(sweep.read_text().replace("attempts: 2", f"attempts: 2\nagent: {agent}"))
    return sweep


@pytest.mark.parametrize("agent", ["oracle", "nop"])
def test_there_is_one_condition_and_no_endpoint(tmp_path: Path, agent: str) -> None:
    plan = plan_of(harbor_world(tmp_path, agent))
    assert plan.conditions == (agent,)
    assert plan.spec.endpoints == {}
    assert [cell.played(plan.spec.agent) for cell in plan.cells] == [agent, agent]
    assert len(plan.attempts) == 4
    assert any("the sweep's conditions are not run" in each for each in plan.warnings)
    again = plan_from_lock(lock_of(plan), environment={})
    assert (again.spec, again.cells) == (plan.spec, plan.cells)


def test_it_needs_neither_conditions_nor_endpoints_nor_keys(tmp_path: Path) -> None:
    sweep = harbor_world(tmp_path)
    lines = [
        line
        for line in sweep.read_text().splitlines()
        if not line.startswith(("cond", "  -", "endp"))
    ]
    sweep.write_text("\n".join(lines))
    (tmp_path / "deploy/endpoints/anthropic-live.json").unlink()
    assert plan_of(sweep).conditions == ("oracle",)


def test_a_model_needs_conditions(tmp_path: Path) -> None:
    sweep = write(tmp_path / "manifests" / "s.yaml", "name: s\n")
    with pytest.raises(ManifestError, match="conditions: this field is required"):
        load_sweep(sweep)


def test_flags_make_the_same_sweep(tmp_path: Path) -> None:
    harbor_world(tmp_path)
    given = Overrides(agent="nop", multipliers={"agent": 2.0})
    loaded = sweep_from_flags(tmp_path / "manifests" / "tasks", (), given)
    plan = make_plan(loaded, started_at=STARTED, environment=NOWHERE)
    assert plan.name == "tasks-nop"
    assert (plan.spec.agent, plan.conditions) == ("nop", ("nop",))
    assert plan.spec.timeout_multipliers.model_dump() == {
        "agent": 2.0, "verifier": 1.0, "agent_setup": 1.0, "environment_build": 1.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        ("solution/solve.sh", "3: agent: an oracle plays a task's solution/solve.sh; without one: alpha"),
        ("fixture.yaml", "3: agent: 'oracle' says nothing on a relay, and these tasks are graded"),
    ],
)  # fmt: skip
def test_what_it_cannot_play_is_refused_before_anything_starts(
    tmp_path: Path, break_it: str, told: str
) -> None:
    sweep = harbor_world(tmp_path)
    path = tmp_path / "manifests/tasks/alpha" / break_it
    path.unlink() if path.exists() else write(path, "schema_version: 1\n")
    with pytest.raises(ManifestError) as caught:
        plan_of(sweep)
    (fault,) = fault_lines(caught.value, tmp_path)
    assert fault.startswith(f"manifests/sweeps/small.yaml:{told}"), fault


def test_a_user_of_the_tasks_own_is_an_oracles_alone(tmp_path: Path) -> None:
    sweep = harbor_world(tmp_path)
    path = tmp_path / "manifests/tasks/alpha/task.toml"
    path.write_text(path.read_text().replace("[agent]", '[agent]\nuser = "root"'))
    assert plan_of(sweep).conditions == ("oracle",)
    sweep.write_text(sweep.read_text().replace("agent: oracle\n", ""))
    with pytest.raises(
        ManifestError, match=r"agent\.user: a model's agent runs as its image's user"
    ):
        plan_of(sweep)


def test_its_condition_caps_no_tasks_time() -> None:
    condition = played_condition("oracle", "oracle").condition
    assert condition.trial_budget.timeout_seconds == PLAYED_S
    assert condition.digest != played_condition("nop", "nop").condition.digest
