"""``regrades/<time>.json``: what the present verifiers say to a sweep's evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.outcome import Verdict


class RegradedTask(Strict):
    """A task then and now."""

    task: str
    old_digest: str
    """In the sweep's lock."""
    new_digest: str
    """Of its folder and the verifier kit now."""


class Regraded(Strict):
    """One try that was verified again."""

    task: str
    condition: str
    attempt: str
    try_: str = Field(alias="try")
    old_digest: str
    """The task's, when the first verdict was given."""
    new_digest: str
    old_verdict: Verdict
    new_verdict: Verdict
    """``invalid``: the verifier gives no usable word now."""
    old_reward: float | None
    new_reward: float | None
    moved: dict[str, tuple[float | None, float | None]]
    """Dimension to (then, now) where they differ; null: there was or is no such dimension."""
    fault: str
    """Why the verifier gives no usable word; empty: it does."""
    changed: bool
    """Whether the verdict would be another."""


class NotRegraded(Strict):
    """One try that was not verified again, and why."""

    task: str
    condition: str
    attempt: str
    try_: str = Field(alias="try")
    reason: str


class Regrade(Strict):
    """A whole regrade."""

    schema_version: Literal[1] = 1
    sweep: str
    at: str
    """RFC 3339, UTC."""
    tasks: tuple[RegradedTask, ...]
    regraded: tuple[Regraded, ...]
    left_out: tuple[NotRegraded, ...]

    @property
    def changes(self) -> tuple[Regraded, ...]:
        """The tries whose verdict, reward or dimensions would be others."""
        return tuple(
            each
            for each in self.regraded
            if each.changed or each.moved or each.old_reward != each.new_reward
        )
