"""From results to a ``Summary``. Pure: no store, no clock.

A missing attempt, invalid or open, says nothing about the model: valid-only rates leave it out,
strict rates count it as failed, and the bounds say what it could have changed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from scheduler.report.intervals import clustered, pass_over_k, wilson
from scheduler.report.power import minimum_detectable, spread_from_one_side
from scheduler.report.rates import MUST_COME_TO, canary_scores, rates, shown
from scheduler.report.results import CellResults, SweepResults
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
    scored = [cell for cell in results.cells if cell.canary is None and cell.attempts]
    for cell in scored:
        by_condition[cell.condition_digest].append(cell)
    canaries = [cell for cell in results.cells if cell.canary is not None and cell.attempts]
    return Summary(
        sweep=results.sweep,
        rule=results.rule,
        coverage_gate=results.coverage_gate,
        conditions=tuple(
            _condition_score(cells, results.coverage_gate, results.rule)
            for cells in by_condition.values()
        ),
        cells=tuple(_cell_score(cell) for cell in scored),
        causes=_causes(results.cells),
        canaries=canary_scores(canaries),
        canary_cells=tuple(_cell_score(cell) for cell in canaries),
        superseded=tuple(
            _cell_score(cell)
            for cell in results.superseded
            if any(attempt.tries for attempt in cell.attempts)
        ),
        notes=_notes(results),
    )


def _cell_score(cell: CellResults) -> CellScore:
    counts = rates(cell.attempts)
    valid = counts.passed + counts.failed
    results = [attempt.result for attempt in cell.attempts if attempt.result is not None]
    lost = Counter(
        name for result in results for name, value in result.dimensions.items() if value < 1.0
    )
    return CellScore(
        cell=cell.cell,
        condition=cell.condition,
        task=cell.task,
        layer=cell.layer,
        rates=counts,
        interval=shown(wilson(counts.passed, valid)) if valid else None,
        mean_reward=_cell_reward(cell),
        lost_dimensions=dict(lost.most_common()),
        condition_digest=cell.condition_digest,
        task_digest=cell.task_digest,
        spent=_spent([cell]),
    )


def _condition_score(cells: Sequence[CellResults], gate: float, rule: str) -> ConditionScore:
    counts = rates([attempt for cell in cells for attempt in cell.attempts])
    withheld = withheld_because(cells, gate)
    tasks = [cell for cell in cells if cell.layer == "workflow"]
    workflow = _workflow_score(tasks, rule, headline=not withheld) if tasks else None
    return ConditionScore(
        condition=cells[0].condition,
        digest=cells[0].condition_digest,
        rates=counts,
        headline=not withheld,
        withheld=withheld,
        figure=None if withheld or workflow is None else workflow.figure(rule),
        workflow=workflow,
        spent=_spent(cells),
    )


def withheld_because(cells: Sequence[CellResults], gate: float) -> str:
    """Why no single figure may stand for a condition; empty where one may.

    Workflow tasks, which the figure is of, must reach the gate by themselves too. A task without
    any valid attempt would silently drop out of a mean over tasks, however high the coverage of
    the others is.
    """
    workflow = [cell for cell in cells if cell.layer == "workflow"]
    for some, of in ((cells, ""), (workflow, " of the workflow tasks")):
        if some:
            coverage = rates([attempt for cell in some for attempt in cell.attempts]).coverage
            if coverage < gate:
                return f"coverage{of} {coverage:.1%} is below the gate {gate:.1%}"
    for cell in cells:
        if all(attempt.result is None for attempt in cell.attempts):
            return f"task {cell.task} has no valid attempt"
    return ""


def _workflow_score(cells: Sequence[CellResults], rule: str, *, headline: bool) -> WorkflowScore:
    tasks = [rates(cell.attempts) for cell in cells]
    carrying = [(task.passed, task.passed + task.failed) for task in tasks if task.coverage]
    # The interval belongs to the figure that the rule makes the headline.
    counted = [(task.passed, task.planned) for task in tasks] if rule == "strict" else carrying
    spread = spread_from_one_side(counted)
    return WorkflowScore(
        tasks=len(tasks),
        tasks_valid=len(carrying),
        strict=_mean(task.strict for task in tasks),
        valid_only=_mean(passes / valid for passes, valid in carrying) if carrying else None,
        low=_mean(task.low for task in tasks),
        high=_mean(task.high for task in tasks),
        interval=shown(clustered(counted)) if headline else None,
        outer=_outer(tasks),
        mean_reward=_mean_reward(cells),
        detectable=None if spread is None else minimum_detectable(len(counted), spread),
        k=_k_scores(carrying) if headline else (),
    )


def _outer(tasks: Sequence[Rates]) -> IntervalScore:
    least = clustered([(task.passed, task.planned) for task in tasks])
    most = clustered([(task.planned - task.failed, task.planned) for task in tasks])
    return IntervalScore(low=least.low, high=most.high, method=most.method)


def _mean_reward(cells: Sequence[CellResults]) -> float | None:
    means = [mean for cell in cells if (mean := _cell_reward(cell)) is not None]
    return _mean(means) if means else None


def _cell_reward(cell: CellResults) -> float | None:
    rewards = [
        attempt.result.reward
        for attempt in cell.attempts
        if attempt.result is not None and attempt.result.reward is not None
    ]
    return _mean(rewards) if rewards else None


def _k_scores(tasks: Sequence[tuple[int, int]]) -> tuple[KScore, ...]:
    """One row for every k that some task carries."""
    lines = [list(pass_over_k(passes, valid)) for passes, valid in tasks]
    rows = []
    for k in range(1, max(map(len, lines), default=0) + 1):
        carrying = [line[k - 1] for line in lines if len(line) >= k]
        rows.append(
            KScore(
                k=k,
                tasks=len(carrying),
                pass_at=_mean(each.at for each in carrying),
                pass_all=_mean(each.every for each in carrying),
            )
        )
    return tuple(rows)


def _spent(cells: Sequence[CellResults]) -> Spent:
    tries = [record for cell in cells for attempt in cell.attempts for record in attempt.tries]
    return Spent(
        calls=sum(record.usage.calls for record in tries),
        input_tokens=sum(record.usage.input_tokens for record in tries),
        cached_input_tokens=sum(record.usage.cached_input_tokens for record in tries),
        cache_write_tokens=sum(record.usage.cache_write_tokens for record in tries),
        output_tokens=sum(record.usage.output_tokens for record in tries),
        reasoning_tokens=sum(record.usage.reasoning_tokens for record in tries),
        cost_usd=math.fsum(record.usage.cost_usd for record in tries),
        uncached_cost_usd=math.fsum(record.usage.uncached_cost_usd for record in tries),
        unknown_cost_calls=sum(record.usage.unknown_cost_calls for record in tries),
        trial_seconds=math.fsum(sum(record.phase_seconds.values()) for record in tries),
    )


def _causes(cells: Sequence[CellResults]) -> tuple[CauseCount, ...]:
    counts: Counter[tuple[str, str, str, str]] = Counter()
    examples: dict[tuple[str, str, str, str], str] = {}
    for cell in cells:
        for attempt in cell.attempts:
            for record in attempt.tries:
                if record.verdict is (MUST_COME_TO[cell.canary] if cell.canary else Verdict.PASS):
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
    notes = []
    if not results.planned:
        notes.append("the sweep plans no attempt")
    if unrun:
        notes.append(f"{unrun} of {results.planned} attempts have not been tried yet")
    tries = [each for cell in results.cells for a in cell.attempts for each in a.tries]
    unlike = [each for each in tries if each.token_differences]
    if unlike:
        notes.append(
            f"in {len(unlike)} of {len(tries)} tries an agent's log counts other tokens than the "
            f"ledger, which costs are taken from; see `apiary show {unlike[0].attempt[:8]}`"
        )
    return tuple(notes)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)
