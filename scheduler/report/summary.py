"""``summary.json``: the score of a sweep, for people's tables and for machines.

Every figure stands beside what it leaves open: strict (a missing attempt counts as failed),
valid-only (it counts as nothing), and the bounds between which the truth must lie. Missing are
the invalid attempts and the open ones.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workers.contract.base import Strict


class Rates(Strict):
    """The counts of some attempts, and their rates."""

    planned: int
    passed: int
    failed: int
    invalid: int
    """Attempts that were tried until their tries were spent, without a verdict."""
    open: int
    """Attempts that ``resume`` would go on with: not tried yet, stopped, or with tries left."""
    tries: int
    """Tries that ended, over all attempts; more than the attempts where some were repeated."""
    invalid_tries: int
    coverage: float
    """Valid attempts / planned attempts."""
    strict: float
    valid_only: float | None
    """Null where no attempt is valid."""
    low: float
    """The rate if every missing attempt failed."""
    high: float
    """The rate if every missing attempt passed."""


class IntervalScore(Strict):
    """A 95 % interval."""

    low: float
    high: float
    method: Literal["wilson", "clustered"]


class CellScore(Strict):
    """One task under one condition."""

    cell: str
    condition: str
    task: str
    layer: str
    rates: Rates
    interval: IntervalScore | None
    """Wilson's, over valid attempts."""
    mean_reward: float | None
    """Over valid attempts that carry a reward."""
    lost_dimensions: dict[str, int]
    """Dimension to the number of valid attempts in which it was below 1."""


class KScore(Strict):
    """pass@k and pass^k for one k, over the tasks that have at least k valid attempts."""

    k: int
    tasks: int
    pass_at: float
    pass_all: float


class WorkflowScore(Strict):
    """A condition's rate over the workflow tasks: the mean of per-task rates.

    The interval is that of ``strict`` or ``valid_only``, whichever the sweep's rule names.
    """

    tasks: int
    tasks_valid: int
    """Tasks with at least one valid attempt; only these enter ``valid_only``."""
    strict: float
    valid_only: float | None
    low: float
    high: float
    interval: IntervalScore | None
    k: tuple[KScore, ...]

    def figure(self, rule: str) -> float | None:
        """The one figure that the sweep's rule asks for."""
        return self.strict if rule == "strict" else self.valid_only


class Spent(Strict):
    """Over all tries of a condition, counted or not."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unknown_cost_calls: int
    trial_seconds: float


class ConditionScore(Strict):
    """Everything about one condition."""

    condition: str
    digest: str
    rates: Rates
    """Over all attempts of both layers: counts, not a capability score."""
    headline: bool
    """Whether coverage allows one figure to stand for the condition."""
    withheld: str = ""
    """Why not, in words."""
    workflow: WorkflowScore | None
    """Null where the sweep has no workflow task."""
    spent: Spent


class CauseCount(Strict):
    """How often tries ended for one cause."""

    condition: str
    task: str
    blame: str
    cause: str
    tries: int
    example: str
    """An attempt that shows it."""


class Summary(Strict):
    """``summary.json``."""

    schema_version: Literal[1] = 1
    sweep: str
    rule: str
    coverage_gate: float
    conditions: tuple[ConditionScore, ...]
    cells: tuple[CellScore, ...]
    causes: tuple[CauseCount, ...]
    """What was not a pass, most frequent first."""
    notes: tuple[str, ...] = Field(default=())
    """What a reader must know before the figures."""

    @property
    def conclusive(self) -> bool:
        """Whether every condition may carry a headline."""
        return all(condition.headline for condition in self.conditions)
