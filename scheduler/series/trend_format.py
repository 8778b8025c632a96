"""``series/<name>/<due>.json``: one line of a trend, created once, for every run that began."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scheduler.report.gate_format import Decision
from scheduler.report.summary import IntervalScore
from scheduler.series.records import Outcome
from workers.contract.base import Strict


class TrendCell(Strict):
    """One task under one condition."""

    task: str
    task_digest: str
    layer: str
    images: tuple[str, ...]
    """The ids of the images that its tries ran in, sorted."""
    planned: int
    passed: int
    failed: int
    rate: float | None
    """Of valid attempts; null: there is none."""
    interval: IntervalScore | None
    coverage: float
    tries: int
    cost_usd: float
    mean_seconds: float | None
    """Of a try, over all phases."""

    @property
    def missing(self) -> int:
        """Attempts without a verdict."""
        return self.planned - self.passed - self.failed


class TrendCondition(Strict):
    """One condition with its tasks."""

    condition: str
    digest: str
    coverage: float
    passed: int
    planned: int
    workflow: float | None
    """The headline; null where it is withheld or there is no workflow task."""
    interval: IntervalScore | None
    cost_usd: float
    unknown_cost_calls: int
    failures: dict[str, dict[str, int]]
    """Blame to cause to the number of tries that ended so."""
    cells: tuple[TrendCell, ...]


class Surroundings(Strict):
    """What a run rests on beside its tasks and conditions."""

    apiary: str | None
    """Its version."""
    agent: str
    """Digest of the agent's program; in front of it the agent's kind."""
    base_image: str | None
    profile: dict[str, str]
    """The resources that it was given, in words."""

    @property
    def profile_text(self) -> str:
        """The profile as one line."""
        return ", ".join(f"{name} {value}" for name, value in sorted(self.profile.items()))


class Break(Strict):
    """Something that is another one than in the run before: the line is broken there."""

    what: Literal["task", "image", "agent", "condition", "resource profile", "Apiary version"]
    name: str
    """Of the task or condition; empty for the others."""
    before: str
    after: str

    @property
    def text(self) -> str:
        """In words."""
        name = f" {self.name}" if self.name else ""
        return f"{self.what}{name}: {_short(self.before)} → {_short(self.after)}"


class LineTest(Strict):
    """One line of a series, held against what it was: the workflow mean or one behaviour."""

    condition: str
    task: str
    """Empty: the mean over the workflow tasks."""
    p: float | None
    """The smallest p over the windows; null: there is nothing to hold it against yet."""
    limit: float
    """An alarm is raised at this p or below."""
    window: int
    """How many runs, the last one included, the smallest p is of."""
    recent: tuple[int, int]
    """(passed, valid attempts) in those runs."""
    before: tuple[int, int]
    """Likewise in the runs before that it is held against."""
    fallen_since: str | None
    """The due time of the first run that is worse, while the alarm lasts."""
    event: Literal["", "fell", "recovered"]

    @property
    def fall(self) -> float:
        """By how much the rate fell."""
        now, was = (a / b if b else 0.0 for a, b in (self.recent, self.before))
        return was - now


class Judgement(Strict):
    """What a run came to when it was held against those before it."""

    outcome: Outcome
    reasons: tuple[str, ...]
    baseline: str | None = None
    """The sweep that the gate held it against."""
    gate: Decision | None = None
    """The answer of the gate for this run alone; null: there was no baseline."""
    tests: tuple[LineTest, ...] = ()
    across: tuple[str, ...] = ()
    """What has changed between the runs that were compared, in words."""

    def events(self, kind: Literal["fell", "recovered"]) -> tuple[LineTest, ...]:
        """The tests that moved."""
        return tuple(each for each in self.tests if each.event == kind)


class TrendRecord(Strict):
    """One run of a series."""

    schema_version: Literal[1] = 1
    series: str
    due: str
    """RFC 3339, UTC; its stamp stands in the key and in the sweep's id."""
    zone: str
    sweep: str
    ended_at: str
    state: str
    """How the sweep ended: ``settled``, ``infrastructure``, ``budget``, ``deadline``, …"""
    rule: str
    coverage_gate: float
    surroundings: Surroundings | None
    """Null: the run never had a lock."""
    conditions: tuple[TrendCondition, ...]
    breaks: tuple[Break, ...]
    judgement: Judgement
    notes: tuple[str, ...] = Field(default=())

    @property
    def counts(self) -> bool:
        """Whether it says something about the agent."""
        return self.judgement.outcome in ("pass", "baseline", "inconclusive", "regression")


def trend_key(series: str, stamp: str) -> str:
    """The key of a run's line."""
    return f"series/{series}/{stamp}.json"


def _short(value: str) -> str:
    kind, colon, digest = value.rpartition(":")
    if len(digest) == 64:
        return f"{kind}{colon}{digest[:12]}"
    return value or "none"
