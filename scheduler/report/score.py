"""From results to a ``Summary``. Pure: no store, no clock.

A missing attempt, invalid or open, says nothing about the model: valid-only rates leave it out,
strict rates count it as failed, and the bounds say what it could have changed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from scheduler.report.intervals import Interval, clustered, pass_all, pass_at, wilson
from scheduler.report.results import AttemptResults, CellResults, SweepResults
from scheduler.report.summary import (
    CauseCount,
    CellScore,
    ConditionScore,
    IntervalScore,
    KScore,
    Rates,
    Spent,
    Summary,
    WorkflowScore,
)
from workers.contract.outcome import Verdict


def score(results: SweepResults) -> Summary:
    """The whole summary of a sweep."""
    by_condition: defaultdict[str, list[CellResults]] = defaultdict(list)
    for cell in results.cells:
        by_condition[cell.condition_digest].append(cell)
    return Summary(
        sweep=results.sweep,
        rule=results.rule,
        coverage_gate=results.coverage_gate,
        conditions=tuple(
            _condition_score(cells, results.coverage_gate, results.rule)
            for cells in by_condition.values()
        ),
        cells=tuple(_cell_score(cell) for cell in results.cells),
        causes=_causes(results.cells),
        notes=_notes(results),
    )


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


def _cell_score(cell: CellResults) -> CellScore:
    counts = rates(cell.attempts)
    valid = counts.passed + counts.failed
    results = [attempt.result for attempt in cell.attempts if attempt.result is not None]
    rewards = [result.reward for result in results if result.reward is not None]
    lost = Counter(
        name for result in results for name, value in result.dimensions.items() if value < 1.0
    )
    return CellScore(
        cell=cell.cell,
        condition=cell.condition,
        task=cell.task,
        layer=cell.layer,
        rates=counts,
        interval=_shown(wilson(counts.passed, valid)) if valid else None,
        mean_reward=math.fsum(rewards) / len(rewards) if rewards else None,
        lost_dimensions=dict(lost.most_common()),
    )


def _condition_score(cells: Sequence[CellResults], gate: float, rule: str) -> ConditionScore:
    counts = rates([attempt for cell in cells for attempt in cell.attempts])
    withheld = _withheld(cells, counts, gate)
    workflow = [rates(cell.attempts) for cell in cells if cell.layer == "workflow"]
    return ConditionScore(
        condition=cells[0].condition,
        digest=cells[0].condition_digest,
        rates=counts,
        headline=not withheld,
        withheld=withheld,
        workflow=_workflow_score(workflow, rule) if workflow else None,
        spent=_spent(cells),
    )


def _withheld(cells: Sequence[CellResults], counts: Rates, gate: float) -> str:
    """Why no single figure may stand for a condition; empty where one may.

    A task without any valid attempt would silently drop out of a mean over tasks, however
    high the coverage of the others is.
    """
    if counts.coverage < gate:
        return f"coverage {counts.coverage:.1%} is below the gate {gate:.1%}"
    for cell in cells:
        if all(attempt.result is None for attempt in cell.attempts):
            return f"task {cell.task} has no valid attempt"
    return ""


def _workflow_score(tasks: Sequence[Rates], rule: str) -> WorkflowScore:
    carrying = [(task.passed, task.passed + task.failed) for task in tasks if task.coverage]
    # The interval belongs to the figure that the rule makes the headline.
    counted = [(task.passed, task.planned) for task in tasks] if rule == "strict" else carrying
    return WorkflowScore(
        tasks=len(tasks),
        tasks_valid=len(carrying),
        strict=_mean(task.strict for task in tasks),
        valid_only=_mean(passes / valid for passes, valid in carrying) if carrying else None,
        low=_mean(task.low for task in tasks),
        high=_mean(task.high for task in tasks),
        interval=_shown(clustered(counted)) if carrying else None,
        k=_k_scores(carrying),
    )


def _k_scores(tasks: Sequence[tuple[int, int]]) -> tuple[KScore, ...]:
    """One row for every k that some task carries."""
    rows = []
    for k in range(1, max((valid for _, valid in tasks), default=0) + 1):
        carrying = [(passes, valid) for passes, valid in tasks if valid >= k]
        rows.append(
            KScore(
                k=k,
                tasks=len(carrying),
                pass_at=_mean(pass_at(k, passes, valid) for passes, valid in carrying),
                pass_all=_mean(pass_all(k, passes, valid) for passes, valid in carrying),
            )
        )
    return tuple(rows)


def _spent(cells: Sequence[CellResults]) -> Spent:
    tries = [record for cell in cells for attempt in cell.attempts for record in attempt.tries]
    return Spent(
        calls=sum(record.usage.calls for record in tries),
        input_tokens=sum(record.usage.input_tokens for record in tries),
        output_tokens=sum(record.usage.output_tokens for record in tries),
        cost_usd=math.fsum(record.usage.cost_usd for record in tries),
        unknown_cost_calls=sum(record.usage.unknown_cost_calls for record in tries),
        trial_seconds=math.fsum(sum(record.phase_seconds.values()) for record in tries),
    )


def _causes(cells: Sequence[CellResults]) -> tuple[CauseCount, ...]:
    counts: Counter[tuple[str, str, str, str]] = Counter()
    examples: dict[tuple[str, str, str, str], str] = {}
    for cell in cells:
        for attempt in cell.attempts:
            for record in attempt.tries:
                if record.verdict is Verdict.PASS:
                    continue
                key = (cell.condition, cell.task, record.blame.value, record.cause.value)
                counts[key] += 1
                examples.setdefault(key, attempt.attempt)
    return tuple(
        CauseCount(
            condition=key[0],
            task=key[1],
            blame=key[2],
            cause=key[3],
            tries=count,
            example=examples[key],
        )
        for key, count in counts.most_common()
    )


def _notes(results: SweepResults) -> tuple[str, ...]:
    """What must be known before reading the figures."""
    unrun = sum(not attempt.tries for cell in results.cells for attempt in cell.attempts)
    if not unrun:
        return ()
    return (f"{unrun} of {results.planned} attempts have not been tried yet",)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)


def _shown(interval: Interval) -> IntervalScore:
    return IntervalScore(low=interval.low, high=interval.high, method=interval.method)
