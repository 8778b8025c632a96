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
    method: Literal["wilson", "clustered", "paired", "fixed"]


class Spent(Strict):
    """Over all tries, counted or not."""

    calls: int
    input_tokens: int
    """With those read from a cache and written to one."""
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    """With those that were thought and not said."""
    reasoning_tokens: int
    cost_usd: float
    """Over the calls whose cost is known."""
    uncached_cost_usd: float
    """Of the same calls, as if nothing had been read from a cache."""
    unknown_cost_calls: int
    trial_seconds: float


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
    condition_digest: str
    task_digest: str
    spent: Spent


class KScore(Strict):
    """pass@k and pass^k for one k, over the tasks that have at least k valid attempts."""

    k: int
    tasks: int
    pass_at: float
    pass_all: float


class WorkflowScore(Strict):
    """A condition's rate over the workflow tasks: the mean of per-task rates.

    The interval is that of ``strict`` or ``valid_only``, whichever the sweep's rule names. Where
    the headline is withheld there is neither an interval of it nor pass@k.
    """

    tasks: int
    tasks_valid: int
    """Tasks with at least one valid attempt; only these enter ``valid_only``."""
    strict: float
    valid_only: float | None
    low: float
    high: float
    interval: IntervalScore | None
    outer: IntervalScore
    """From the interval's lower end if every missing attempt failed to its upper end if every one
    passed: chance and missing data together."""
    mean_reward: float | None
    """Mean over tasks of the mean reward of their valid attempts."""
    detectable: float | None
    """The difference to another condition of this size that would be found in 80 % of cases at
    5 %, as far as these results tell the spread; null where they do not."""
    k: tuple[KScore, ...]

    def figure(self, rule: str) -> float | None:
        """The one figure that the sweep's rule asks for."""
        return self.strict if rule == "strict" else self.valid_only


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
    figure: float | None
    """The headline: the workflow rate by the sweep's rule; null where it is withheld, or where
    there is no workflow task."""
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


class CanaryScore(Strict):
    """The canaries of one kind, or all of them together: what they say of the harness."""

    kind: Literal["oracle", "nop", "solver", "all"]
    condition: str
    """Empty for all of them together."""
    rates: Rates
    judged_tries: int
    """Tries that ended, those apart that the operator stopped."""
    error_tries: int
    """Of them invalid: they broke, though nothing depended on a model."""
    error_rate: float | None
    """The infrastructure error rate: ``error_tries`` / ``judged_tries``."""
    error_interval: IntervalScore | None
    unexpected: int
    """Valid attempts that came to other than what this kind must come to: a pass of ``nop``, a
    fail of ``oracle`` or ``solver``."""
    noise_floor: float | None
    """``unexpected`` / valid attempts: how often a verdict is wrong by no fault of a model."""
    noise_interval: IntervalScore | None


class Summary(Strict):
    """``summary.json``."""

    schema_version: Literal[2] = 2
    sweep: str
    rule: str
    coverage_gate: float
    conditions: tuple[ConditionScore, ...]
    cells: tuple[CellScore, ...]
    causes: tuple[CauseCount, ...]
    """What was not a pass, most frequent first."""
    canaries: tuple[CanaryScore, ...] = ()
    """One row a kind, then one of all; empty where the sweep has none. They enter nothing else,
    but ``causes`` has what they came to otherwise than they must."""
    canary_cells: tuple[CellScore, ...] = ()
    superseded: tuple[CellScore, ...] = ()
    """Cells of earlier locks whose task or condition has changed since, as far as they were
    tried. They enter nothing else."""
    notes: tuple[str, ...] = Field(default=())
    """What a reader must know before the figures."""

    @property
    def conclusive(self) -> bool:
        """Whether there are conditions, and every one may carry a headline."""
        return bool(self.conditions) and all(condition.headline for condition in self.conditions)
