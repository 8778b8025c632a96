"""A task's time limits under a sweep's multipliers."""

from __future__ import annotations

from workers.contract.spec import CellSpec, TimeoutMultipliers
from workers.contract.task import Task


def with_longer_limits(cell: CellSpec, multipliers: TimeoutMultipliers) -> CellSpec:
    """The cell with its task's own time limits multiplied; its digest stays what it was.

    Args:
        cell: a task under a condition, whose own budget of time is not touched.
        multipliers: the sweep's.
    """
    if multipliers == TimeoutMultipliers():
        return cell
    return cell.model_copy(update={"task": longer(cell.task, multipliers)})


def longer(task: Task, multipliers: TimeoutMultipliers) -> Task:
    """The task with its time limits multiplied."""
    config = task.config
    build = config.environment.build_timeout_sec
    return task.model_copy(
        update={
            "config": config.model_copy(
                update={
                    "agent": config.agent.model_copy(
                        update={"timeout_sec": config.agent.timeout_sec * multipliers.agent}
                    ),
                    "verifier": config.verifier.model_copy(
                        update={"timeout_sec": config.verifier.timeout_sec * multipliers.verifier}
                    ),
                    "environment": config.environment.model_copy(
                        update={
                            "build_timeout_sec": build and build * multipliers.environment_build
                        }
                    ),
                }
            )
        }
    )
