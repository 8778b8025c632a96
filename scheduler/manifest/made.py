"""Conditions that no file says: those of canaries, and of agents without a model.

They are made here, so that no file can change what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scheduler.manifest.condition import LoadedCondition
from scheduler.manifest.document import Document
from scheduler.manifest.faults import FaultList
from scheduler.manifest.selection import ChosenTask
from scheduler.manifest.sweep import LoadedSweep
from workers.contract.base import sha256_hex
from workers.contract.condition import Condition, Prices, PromptFile, RosterEntry, TrialBudget
from workers.contract.spec import CanaryKind, Played

PLAYED_PROMPT = "Nobody reads this: no model is asked.\n"
PLAYED_S = 7 * 24 * 3600
"""Of a whole trial: long enough that a task's own limit is the one that counts."""


def made_condition(
    name: str, model: str, prompt: str, timeout_s: int, canary: CanaryKind | None = None
) -> LoadedCondition:
    """A condition of one agent; its endpoint bears the same name and costs nothing."""
    digest = sha256_hex(prompt.encode())
    condition = Condition(
        condition=name,
        roster=(
            RosterEntry(
                id="solo",
                kind="orchestrator",
                role="solo",
                count=1,
                endpoint=name,
                model_revision=model,
                prompt=PromptFile(path=f"{name}.md", sha256=digest),
            ),
        ),
        prices={
            name: Prices(
                input_per_million_usd=0.0,
                cached_input_per_million_usd=0.0,
                output_per_million_usd=0.0,
            )
        },
        trial_budget=TrialBudget(timeout_seconds=timeout_s),
    )
    return LoadedCondition(
        condition=condition,
        path=Path(name),
        prompts={digest: prompt},
        warnings=(),
        document=Document(name, {}),
        canary=canary,
    )


def played_condition(agent: Played, name: str, canary: CanaryKind | None = None) -> LoadedCondition:
    """The condition of an agent without a model."""
    return made_condition(name, agent, PLAYED_PROMPT, PLAYED_S, canary)


def unplayable(agent: Played, tasks: Sequence[ChosenTask]) -> str:
    """Why an agent without a model cannot play these tasks; empty: it can."""
    lacking = [each.task.bare_name for each in tasks if not each.has_solution]
    if agent == "oracle" and lacking:
        return f"an oracle plays a task's solution/solve.sh; without one: {_few(lacking)}"
    native = [each.task.bare_name for each in tasks if each.task.fixture is not None]
    if native:
        return (
            f"{agent!r} says nothing on a relay, and these tasks are graded by what was said "
            f"there (fixture.yaml): {_few(native)}"
        )
    return ""


def refuse_unplayable(sweep: LoadedSweep, agent: Played, tasks: Sequence[ChosenTask]) -> None:
    """Refuses a sweep whose agent cannot play its tasks.

    Raises:
        ManifestError: naming the tasks.
    """
    why, faults = unplayable(agent, tasks), FaultList()
    if why:
        faults.add(sweep.document.fault(("agent",), why))
    faults.settle()


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
