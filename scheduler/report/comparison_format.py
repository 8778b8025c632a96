"""The document of ``apiary compare --json``."""

from __future__ import annotations

from typing import Literal

from scheduler.report.summary import IntervalScore, Rates
from workers.contract.base import Strict


class AttemptMark(Strict):
    """How one attempt stands."""

    attempt: str
    index: int
    stands: Literal["pass", "fail", "invalid", "open"]


class SideCell(Strict):
    """One task under one of the two conditions."""

    rates: Rates
    attempts: tuple[AttemptMark, ...]


class TaskPair(Strict):
    """One task under both conditions."""

    task: str
    layer: str
    a: SideCell
    b: SideCell
    difference: float | None
    """Rate of b − rate of a by the sweeps' rule; null where a side has no valid attempt."""
    p: float | None
    """Of a regression task alone: Fisher's exact test, two-sided, on valid attempts."""
    p_holm: float | None


class Lost(Strict):
    """What one side lost of the attempts at the shared tasks."""

    planned: int
    invalid: int
    open: int
    causes: dict[str, int]
    """``blame: cause`` of the last try of each invalid attempt."""


class WorkflowPair(Strict):
    """The shared workflow tasks of two conditions: mean over tasks of the difference b − a.

    Where one side's coverage is below its gate there are only the bounds.
    """

    tasks: int
    figure_a: float | None
    """The rate over the shared tasks, by the sweeps' rule."""
    figure_b: float | None
    difference: float | None
    interval: IntervalScore | None
    low: float
    """If every missing attempt of a passed and of b failed."""
    high: float
    """The other way round."""
    p: float | None
    """Sign-flip permutation test over tasks, two-sided."""
    p_holm: float | None
    test: Literal["exact", "monte_carlo"] | None
    detectable: float | None
    """The mean difference that would have been found in 80 % of cases at 5 %."""


class PairScore(Strict):
    """Two conditions, task by task."""

    condition_a: str
    condition_b: str
    digest_a: str
    digest_b: str
    withheld_a: str
    """Why no figure may stand for side a on these tasks; empty where one may."""
    withheld_b: str
    workflow: WorkflowPair | None
    tasks: tuple[TaskPair, ...]
    lost_a: Lost
    lost_b: Lost

    @property
    def moved(self) -> tuple[TaskPair, ...]:
        """The tasks whose rates differ, the largest fall first."""
        found = [task for task in self.tasks if task.difference]
        return tuple(sorted(found, key=lambda task: (task.difference or 0.0, task.task)))


class Comparison(Strict):
    """The document of ``apiary compare --json``."""

    schema_version: Literal[1] = 1
    a: str
    b: str
    rule: str
    level: float
    tests: int
    """How many p-values Holm's correction goes over."""
    pairs: tuple[PairScore, ...]
    warnings: tuple[str, ...]
    """What differs between the two sides besides what is compared."""
