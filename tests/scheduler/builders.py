"""Values of a small sweep, with sensible defaults."""

from __future__ import annotations

from typing import Any, NamedTuple

from workers.contract.condition import Condition
from workers.contract.outcome import Cause, Phase, Verdict, outcome_of
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Epoch, Lease, Limits, SweepSpec, attempt_id, cell_id
from workers.contract.task import Task
from workers.contract.unfinished import unfinished_record

SWEEP = "demo-20260101T000000Z"


class Planned(NamedTuple):
    """A planned attempt."""

    attempt: str
    cell: str
    index: int  # type: ignore[assignment]


def limits(**changes: Any) -> Limits:
    """Limits of a sweep."""
    return Limits.model_validate(changes)


def sweep_spec(**changes: Any) -> SweepSpec:
    """What every trial of the sweep shares."""
    values: dict[str, Any] = {
        "sweep": SWEEP,
        "store": "file:///dev/null/nowhere",
        "agent": "reference",
        "relay": "embedded",
        "network": "sealed",
        "base_image": None,
        "seed": 1,
        "limits": Limits(),
        "endpoints": {},
    }
    return SweepSpec.model_validate({**values, **changes})


def condition(name: str = "solver") -> Condition:
    """A condition of one agent."""
    return Condition.model_validate(
        {
            "condition": name,
            "roster": (
                {
                    "id": "solo",
                    "kind": "orchestrator",
                    "role": "all",
                    "count": 1,
                    "endpoint": name,
                    "model_revision": "1",
                    "prompt": {"path": "persona.md", "sha256": "0" * 64},
                    "generation": {},
                },
            ),
            "prices": {
                name: {
                    "input_per_million_usd": 0.0,
                    "cached_input_per_million_usd": 0.0,
                    "output_per_million_usd": 0.0,
                }
            },
            "trial_budget": {"timeout_seconds": 60},
        }
    )


def task(name: str = "greet") -> Task:
    """A task; its digest is made of its name."""
    return Task.model_validate(
        {
            "digest": (name.encode().hex() + "0" * 64)[:64],
            "config": {
                "schema_version": "1.3",
                "task": {"name": f"buzz-native/{name}"},
                "metadata": {
                    "evaluation_layer": "workflow",
                    "difficulty": "easy",
                    "category": "messages",
                },
                "agent": {"timeout_sec": 60.0},
                "verifier": {"timeout_sec": 60.0},
                "environment": {},
            },
            "instruction": "Say hello.",
        }
    )


def cell_spec(condition_name: str = "solver", task_name: str = "greet") -> CellSpec:
    """One task under one condition."""
    made, under = task(task_name), condition(condition_name)
    return CellSpec(
        cell=cell_id(under.digest, made.digest),
        task=made,
        condition=under,
        prompts={"0" * 64: "Be kind."},
    )


def cells(*, conditions: int = 1, tasks: int = 1) -> dict[str, CellSpec]:
    """Cells by id."""
    made = [
        cell_spec(f"condition-{c}", f"task-{t}") for t in range(tasks) for c in range(conditions)
    ]
    return {each.cell: each for each in made}


def attempts(of: dict[str, CellSpec], count: int) -> list[Planned]:
    """The attempts of cells, ``count`` of each, the cells in turn."""
    return [
        Planned(attempt_id(SWEEP, cell.condition.digest, cell.task.digest, index), cell.cell, index)
        for index in range(count)
        for cell in of.values()
    ]


def lease(cell: CellSpec, counter: int = 1, *, generation: int = 1, term_s: float = 60.0) -> Lease:
    """A lease of the cell's first attempt."""
    return Lease(
        attempt=attempt_id(SWEEP, cell.condition.digest, cell.task.digest, 0),
        index=0,
        cell=cell.cell,
        epoch=Epoch(generation, counter),
        term_s=term_s,
    )


def record(
    cell: CellSpec,
    given: Lease,
    cause: Cause = Cause.NONE,
    *,
    node: str = "n1",
    detail: str = "",
) -> TryRecord:
    """How the try of a lease ended."""
    return unfinished_record(
        outcome_of(cause, Phase.SEAL, detail),
        sweep=SWEEP,
        cell=cell,
        attempt=given.attempt,
        index=given.index,
        epoch=given.epoch,
        node=node,
        started_at="2026-01-01T00:00:00.000Z",
        ended_at="2026-01-01T00:00:01.000Z",
    ).model_copy(update={"probe": given.probe})


def verdict_cause(verdict: Verdict) -> Cause:
    """A cause that gives the verdict."""
    return {Verdict.PASS: Cause.NONE, Verdict.FAIL: Cause.WRONG}.get(verdict, Cause.CONTAINER_LOST)
