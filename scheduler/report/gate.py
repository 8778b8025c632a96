"""``apiary gate``: is a sweep still as good as its baseline? Pure.

Three answers: ``pass``, ``regression``, and ``inconclusive`` where the attempts do not tell. The
regression layer is judged behaviour by behaviour, the workflow layer by the interval of the mean
difference against a margin. What is missing never helps: it counts as passed where a loss is
claimed and as failed where a pass is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from scheduler.report.behaviours import behaviours
from scheduler.report.comparison import (
    PairedTasks,
    missing_both_ways,
    score_pair,
    warnings,
)
from scheduler.report.comparison_format import WorkflowPair
from scheduler.report.distributions import normal_quantile
from scheduler.report.gate_format import BehaviourGate, Decision, Gate, Scope, WorkflowGate
from scheduler.report.intervals import LEVEL, Interval, fixed
from scheduler.report.names import counted, short_name
from scheduler.report.results import CellResults
from scheduler.report.sides import NotComparableError, Pair, Side, make_pairs
from scheduler.report.summary import IntervalScore


def decide(
    sweep: Side,
    baseline: Side,
    margin: float,
    condition: str | None = None,
    baseline_condition: str | None = None,
    scope: Scope = "these-tasks",
) -> Gate:
    """The gate's answer.

    Args:
        sweep: what is judged.
        baseline: what it is held against.
        margin: how far the workflow rate may fall, above 0.
        condition: only this one of the sweep.
        baseline_condition: against this one of the baseline.
        scope: of the claim about the workflow layer.

    Raises:
        NotComparableError: they cannot be compared, or the baseline is the newer one.
    """
    if sweep.sweep == baseline.sweep and condition == baseline_condition:
        raise NotComparableError(f"{sweep.sweep} would be its own baseline")
    if baseline.lock.started_at > sweep.lock.started_at:
        raise NotComparableError(
            f"the baseline {baseline.sweep} started later than {sweep.sweep}: change them round"
        )
    pairs = make_pairs(baseline, sweep, baseline_condition, condition)
    judged = tuple(behaviours(pairs, sweep.results.coverage_gate))
    workflow = tuple(_workflows(pairs, baseline, sweep, margin, scope))
    reasons = sorted(_reasons(sweep, baseline, judged, workflow), key=_worst_first)
    return Gate(
        sweep=sweep.sweep,
        baseline=baseline.sweep,
        margin=margin,
        scope=scope,
        decision=reasons[0][0] if reasons else Decision.PASS,
        behaviours=judged,
        workflow=workflow,
        reasons=tuple(reason for _, reason in reasons),
        warnings=tuple(warnings(baseline, sweep, pairs)),
    )


def _workflows(
    pairs: Sequence[Pair], baseline: Side, sweep: Side, margin: float, scope: Scope
) -> Iterator[WorkflowGate]:
    """Non-inferiority: the whole interval above −margin is a pass, wholly below a regression.

    Its ends are those of the two extremes of what is missing. The level of the interval that
    claims a regression is Bonferroni's over the conditions.
    """
    gates = (baseline.results.coverage_gate, sweep.results.coverage_gate)
    some = [pair for pair in pairs if pair.of_layer("workflow")]
    for pair in some:
        scored = score_pair(pair, sweep.results.rule, gates)
        workflow = scored.workflow
        assert workflow is not None  # the pair has tasks of this layer
        decision, interval = Decision.INCONCLUSIVE, None
        reason = scored.withheld_b or f"baseline: {scored.withheld_a}"
        if workflow.interval is not None:
            cells = pair.of_layer("workflow")
            decision, interval, reason = _by_margin(cells, workflow, margin, scope, len(some))
        yield WorkflowGate(
            condition=pair.name_b,
            decision=decision,
            interval=interval,
            pair=workflow,
            reason=reason,
        )


def _by_margin(
    cells: Sequence[tuple[CellResults, CellResults]],
    pair: WorkflowPair,
    margin: float,
    scope: Scope,
    conditions: int,
) -> tuple[Decision, IntervalScore, str]:
    worst, best = missing_both_ways(cells)
    interval = IntervalScore(
        low=interval_of(worst, scope).low,
        high=interval_of(best, scope).high,
        method=interval_of(best, scope).method,
    )
    high = interval_of(best, scope, 1 - (1 - LEVEL) / conditions).high
    found = f"{pair.difference or 0.0:+.1%} [{interval.low:+.1%}, {interval.high:+.1%}]"
    decision = Decision.INCONCLUSIVE
    if interval.low > -margin:
        decision, reason = Decision.PASS, f"{found}: not worse by {margin:.1%}"
    elif high < -margin:
        decision, reason = Decision.REGRESSION, f"{found}: worse by more than {margin:.1%}"
    elif (least := -interval_of(best.faultless, scope).low) >= margin:
        reason = (
            f"{found}: so few {'tasks' if scope == 'such-tasks' else 'attempts'} can at best "
            f"exclude a loss of {least:.1%}; {margin:.1%} takes {_needed(margin, scope)}"
        )
    else:
        reason = f"{found}: a loss of {margin:.1%} is neither shown nor excluded"
    return decision, interval, reason


def interval_of(tasks: PairedTasks, scope: Scope, level: float = LEVEL) -> Interval:
    """The interval of the mean difference that a scope asks for."""
    if scope == "these-tasks":
        return fixed(tasks.a, tasks.b, level)
    return tasks.interval(level)


def tasks_needed(margin: float) -> int:
    """The fewest tasks that can hold a margin over such tasks: if none of them moves."""
    # Of T tasks that stay, the interval reaches z/(T + 2) to each side.
    return max(1, math.floor(normal_quantile(0.5 + LEVEL / 2) / margin) - 1)


def attempts_needed(margin: float) -> int:
    """The fewest attempts a side that can hold a margin on these tasks: if all of them pass."""
    z = normal_quantile(0.5 + LEVEL / 2)
    return math.floor(z * z * (1.0 - margin) / margin) + 1


def _needed(margin: float, scope: Scope) -> str:
    if scope == "such-tasks":
        return f"{tasks_needed(margin)} tasks or more"
    return f"{attempts_needed(margin)} attempts a side or more"


def _reasons(
    sweep: Side,
    baseline: Side,
    judged: Sequence[BehaviourGate],
    workflow: Sequence[WorkflowGate],
) -> Iterator[tuple[Decision, str]]:
    for side in (sweep, baseline):
        if side.open:
            yield (
                Decision.INCONCLUSIVE,
                f"{side.sweep} is not settled: {counted(side.open, 'attempt')} open, "
                f"`apiary resume {side.sweep}` goes on with them",
            )
    for each in judged:
        if each.decision not in (None, Decision.PASS):
            name = f"{short_name(each.task)} under {each.condition}"
            yield each.decision, f"{name}: {each.status}: {each.reason}"
    for layer in workflow:
        if layer.decision is not Decision.PASS:
            yield layer.decision, f"workflow under {layer.condition}: {layer.reason}"
    if not workflow and not any(each.decision is not None for each in judged):
        yield (
            Decision.INCONCLUSIVE,
            "there is nothing to hold it against: no kept behaviour, no workflow",
        )


def _worst_first(reason: tuple[Decision, str]) -> bool:
    return reason[0] is not Decision.REGRESSION
