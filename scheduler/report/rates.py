"""Counts and rates of some attempts, and what follows from canaries. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from scheduler.report.intervals import Interval, wilson
from scheduler.report.results import AttemptResults, CellResults
from scheduler.report.summary import CanaryScore, IntervalScore, Rates
from workers.contract.outcome import Blame, Verdict
from workers.contract.spec import CanaryKind

MUST_COME_TO: dict[CanaryKind, Verdict] = {
    "oracle": Verdict.PASS,
    "nop": Verdict.FAIL,
    "solver": Verdict.PASS,
}
"""Kind of a canary to the only verdict that it may have."""


def rates(attempts: Sequence[AttemptResults]) -> Rates:
    """The counts and rates of at least one attempt."""
    planned = len(attempts)
    valid = sum(attempt.result is not None for attempt in attempts)
    passed = sum(attempt.passed for attempt in attempts)
    missing = planned - valid
    unsettled = sum(attempt.open for attempt in attempts)
    tries = [record for attempt in attempts for record in attempt.tries]
    return Rates(
        planned=planned,
        passed=passed,
        failed=valid - passed,
        invalid=missing - unsettled,
        open=unsettled,
        tries=len(tries),
        invalid_tries=sum(record.verdict is Verdict.INVALID for record in tries),
        coverage=valid / planned,
        strict=passed / planned,
        valid_only=passed / valid if valid else None,
        low=passed / planned,
        high=(passed + missing) / planned,
    )


def canary_scores(cells: Sequence[CellResults]) -> tuple[CanaryScore, ...]:
    """A row for every kind of canary, and one of all; none where there are no canaries."""
    rows = [
        _canary_score(kind, [cell for cell in cells if cell.canary == kind])
        for kind in MUST_COME_TO
        if any(cell.canary == kind for cell in cells)
    ]
    return (*rows, _canary_score("all", cells)) if rows else ()


def shown(interval: Interval) -> IntervalScore:
    """An interval as summaries have it."""
    return IntervalScore(low=interval.low, high=interval.high, method=interval.method)


def _canary_score(kind: CanaryKind | Literal["all"], cells: Sequence[CellResults]) -> CanaryScore:
    counts = rates([attempt for cell in cells for attempt in cell.attempts])
    judged = [
        record
        for cell in cells
        for attempt in cell.attempts
        for record in attempt.tries
        if record.blame is not Blame.OPERATOR
    ]
    broken = sum(record.verdict is Verdict.INVALID for record in judged)
    valid = counts.passed + counts.failed
    unexpected = sum(
        attempt.result is not None and attempt.result.verdict is not MUST_COME_TO[cell.canary]
        for cell in cells
        if cell.canary is not None
        for attempt in cell.attempts
    )
    return CanaryScore(
        kind=kind,
        condition="" if kind == "all" else cells[0].condition,
        rates=counts,
        judged_tries=len(judged),
        error_tries=broken,
        error_rate=broken / len(judged) if judged else None,
        error_interval=shown(wilson(broken, len(judged))) if judged else None,
        unexpected=unexpected,
        noise_floor=unexpected / valid if valid else None,
        noise_interval=shown(wilson(unexpected, valid)) if valid else None,
    )
