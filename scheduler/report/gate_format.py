"""The document of ``apiary gate --json``."""

from __future__ import annotations

import enum
from typing import Literal

from scheduler.report.comparison_format import WorkflowPair
from scheduler.report.summary import IntervalScore, Rates
from workers.contract.base import Strict

Scope = Literal["these-tasks", "such-tasks"]
"""What the workflow layer is to show: that the agent is not worse on the tasks that were run, or
that it is not worse on tasks like them, of which they are a sample."""


class Decision(enum.StrEnum):
    """What a gate says, the worst last."""

    PASS = "pass"  # noqa: S105 - a decision, not a password
    INCONCLUSIVE = "inconclusive"
    REGRESSION = "regression"


class BehaviourGate(Strict):
    """One behaviour of the regression layer."""

    task: str
    condition: str
    status: Literal[
        "kept", "lost", "doubtful", "fell", "changed", "absent", "not_kept_before", "new"
    ]
    decision: Decision | None
    """Null: it is shown and does not count, since the baseline does not keep it."""
    baseline: Rates | None
    now: Rates | None
    p_lost: float | None
    """Holm-adjusted: so few passes, if the behaviour were kept."""
    p_fisher: float | None
    """So few passes, if the behaviour were as it was in the baseline."""
    reason: str


class WorkflowGate(Strict):
    """The workflow layer of one condition."""

    condition: str
    decision: Decision
    interval: IntervalScore | None
    """By which it was decided: from the lower end if what is missing was against the sweep to the
    upper end if it was for it; null where a headline is withheld."""
    pair: WorkflowPair
    """Its own interval is that over such tasks, whatever the scope."""
    reason: str


class Gate(Strict):
    """The document of ``apiary gate --json``."""

    schema_version: Literal[1] = 1
    sweep: str
    baseline: str
    margin: float
    scope: Scope
    decision: Decision
    behaviours: tuple[BehaviourGate, ...]
    workflow: tuple[WorkflowGate, ...]
    reasons: tuple[str, ...]
    """Why it is not a pass, the worst first."""
    warnings: tuple[str, ...]
