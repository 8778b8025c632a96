"""A task's own time limits under a sweep's multipliers."""

from __future__ import annotations

from tests.scheduler.builders import cell_spec, sweep_spec
from workers.contract.spec import Epoch, Lease, TimeoutMultipliers
from workers.trial.files import TrialFolder
from workers.trial.handoff import Job
from workers.trial.limits import with_longer_limits
from workers.trial.secrets import Secrets


def job(multipliers: TimeoutMultipliers, build_s: float | None = None) -> Job:
    cell = cell_spec()
    task = cell.task
    environment = task.config.environment.model_copy(update={"build_timeout_sec": build_s})
    config = task.config.model_copy(update={"environment": environment})
    cell = cell.model_copy(update={"task": task.model_copy(update={"config": config})})
    return Job(
        sweep=sweep_spec(timeout_multipliers=multipliers),
        cell=with_longer_limits(cell, multipliers),
        lease=Lease(attempt="a", index=0, cell=cell.cell, epoch=Epoch(1, 1), term_s=1.0),
        folder=TrialFolder(None),  # type: ignore[arg-type]
        secrets=Secrets(),
    )


def test_nothing_is_multiplied_by_one() -> None:
    cell = cell_spec()
    assert with_longer_limits(cell, TimeoutMultipliers()) is cell
    plain = job(TimeoutMultipliers())
    assert (plain.agent_timeout_s, plain.launch_s, plain.build_s) == (60.0, 120.0, 900.0)


def test_each_limit_has_its_own() -> None:
    made = TimeoutMultipliers(agent=0.5, verifier=3.0, agent_setup=2.0, environment_build=4.0)
    long = job(made, build_s=100.0)
    assert long.agent_timeout_s == 30.0
    assert long.cell.task.config.verifier.timeout_sec == 180.0
    assert (long.launch_s, long.build_s) == (240.0, 400.0)
    assert long.cell.task.digest == cell_spec().task.digest


def test_a_conditions_own_budget_of_time_stays() -> None:
    assert job(TimeoutMultipliers(agent=10.0)).agent_timeout_s == 60.0


def test_a_tasks_word_for_its_build_stays_within_the_sweeps() -> None:
    assert job(TimeoutMultipliers(), build_s=10.0).build_s == 10.0
    assert job(TimeoutMultipliers(), build_s=1e6).build_s == 900.0
