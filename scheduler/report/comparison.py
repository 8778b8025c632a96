"""``apiary compare``: two conditions task by task. Pure.

The unit is the difference of the two rates of one task. Regression tasks are tested one by one
and never averaged; workflow tasks give a mean difference with its interval. Holm's correction
goes over every p-value of one comparison.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from scheduler.report.comparison_format import (
    AttemptMark,
    Comparison,
    Lost,
    PairScore,
    SideCell,
    TaskPair,
    WorkflowPair,
)
from scheduler.report.distributions import unlike_passes
from scheduler.report.intervals import LEVEL, Interval, paired
from scheduler.report.names import counted, short_name
from scheduler.report.permutation import holm, sign_flips
from scheduler.report.power import minimum_detectable, spread_between
from scheduler.report.rates import rates, shown
from scheduler.report.results import AttemptResults, CellResults
from scheduler.report.score import withheld_because
from scheduler.report.sides import Pair, Side, make_pairs, unlike


@dataclass(frozen=True)
class PairedTasks:
    """The rates of shared tasks on both sides, as the rule counts them."""

    a: tuple[tuple[int, int], ...]
    """(passes, attempts) of each task."""
    b: tuple[tuple[int, int], ...]

    @property
    def differences(self) -> list[Fraction]:
        """Rate of b − rate of a of each task, exactly."""
        return [
            Fraction(*second) - Fraction(*first)
            for first, second in zip(self.a, self.b, strict=True)
        ]

    @property
    def faultless(self) -> PairedTasks:
        """The same tasks, with every attempt of both sides passed."""
        return PairedTasks(
            tuple((attempts, attempts) for _, attempts in self.a),
            tuple((attempts, attempts) for _, attempts in self.b),
        )

    def interval(self, level: float = LEVEL) -> Interval:
        """Of the mean difference over such tasks."""
        return paired([float(each) for each in self.differences], level)


def compare(
    a: Side, b: Side, condition_a: str | None = None, condition_b: str | None = None
) -> Comparison:
    """Compares every condition that both sides have, or the two that are named.

    Raises:
        NotComparableError: they cannot be compared.
    """
    pairs = make_pairs(a, b, condition_a, condition_b)
    gates = (a.results.coverage_gate, b.results.coverage_gate)
    rule = a.results.rule
    scored = [score_pair(pair, rule, gates) for pair in pairs if pair.cells]
    adjusted = iter(holm(_p_values(scored)))
    return Comparison(
        a=a.sweep,
        b=b.sweep,
        rule=rule,
        level=LEVEL,
        tests=len(list(_p_values(scored))),
        pairs=tuple(_with_holm(pair, adjusted) for pair in scored),
        warnings=tuple(warnings(a, b, pairs)),
    )


def score_pair(pair: Pair, rule: str, gates: tuple[float, float]) -> PairScore:
    """Two conditions over the tasks that they share, without Holm's correction."""
    withheld = [
        withheld_because([cells[side] for cells in pair.cells], gates[side]) for side in (0, 1)
    ]
    workflow = pair.of_layer("workflow")
    return PairScore(
        condition_a=pair.name_a,
        condition_b=pair.name_b,
        digest_a=pair.digest_a,
        digest_b=pair.digest_b,
        withheld_a=withheld[0],
        withheld_b=withheld[1],
        workflow=_workflow(workflow, rule, headline=not any(withheld)) if workflow else None,
        tasks=tuple(_task_pair(a, b, rule) for a, b in pair.cells),
        lost_a=_lost([a for a, _ in pair.cells]),
        lost_b=_lost([b for _, b in pair.cells]),
    )


def paired_tasks(cells: Sequence[tuple[CellResults, CellResults]], rule: str) -> PairedTasks:
    """Both sides of tasks that have something to count on both."""
    counts = [(_counted(a, rule), _counted(b, rule)) for a, b in cells]
    kept = [(a, b) for a, b in counts if a[1] and b[1]]
    return PairedTasks(tuple(a for a, _ in kept), tuple(b for _, b in kept))


def missing_both_ways(
    cells: Sequence[tuple[CellResults, CellResults]],
) -> tuple[PairedTasks, PairedTasks]:
    """The same tasks if all that is missing was against side b, and if it was for it."""
    sides = [(rates(a.attempts), rates(b.attempts)) for a, b in cells]
    low = tuple(tuple((each.passed, each.planned) for each in pair) for pair in sides)
    high = tuple(
        tuple((each.planned - each.failed, each.planned) for each in pair) for pair in sides
    )
    return (
        PairedTasks(tuple(a for a, _ in high), tuple(b for _, b in low)),
        PairedTasks(tuple(a for a, _ in low), tuple(b for _, b in high)),
    )


def warnings(a: Side, b: Side, pairs: Iterable[Pair]) -> Iterator[str]:
    """What a reader must know before believing that a difference is the conditions'."""
    for side in {a.sweep: a, b.sweep: b}.values():
        if side.open:
            yield (
                f"{side.sweep} is not settled: {counted(side.open, 'attempt')} open, "
                f"`apiary resume {side.sweep}` goes on with them"
            )
    if a.sweep != b.sweep:
        yield from (f"the sweeps differ in {line}" for line in unlike(a.lock, b.lock))
    taken: tuple[set[str], set[str]] = (set(), set())
    for pair in pairs:
        taken[0].add(pair.digest_a)
        taken[1].add(pair.digest_b)
        if pair.digest_a != pair.digest_b and pair.name_a == pair.name_b:
            yield (
                f"{pair.name_a} is not the same condition on both sides: "
                f"{pair.digest_a[:12]} and {pair.digest_b[:12]}"
            )
        for cells, what in (
            ([first for first, _ in pair.changed], "changed between the sweeps (another digest)"),
            (pair.only_a, f"only in {a.sweep} under {pair.name_a}"),
            (pair.only_b, f"only in {b.sweep} under {pair.name_b}"),
        ):
            if cells:
                names = ", ".join(short_name(cell.task) for cell in cells)
                yield f"not compared, {what}: {names}"
    if a.sweep != b.sweep:
        for side, digests in zip((a, b), taken, strict=True):
            alone = [name for digest, name in side.conditions.items() if digest not in digests]
            if alone:
                yield f"not compared, only in {side.sweep}: {', '.join(alone)}"


def _counted(cell: CellResults, rule: str) -> tuple[int, int]:
    counts = rates(cell.attempts)
    return counts.passed, counts.planned if rule == "strict" else counts.passed + counts.failed


def _workflow(
    cells: Sequence[tuple[CellResults, CellResults]], rule: str, *, headline: bool
) -> WorkflowPair:
    tasks = paired_tasks(cells, rule)
    sides = [(rates(a.attempts), rates(b.attempts)) for a, b in cells]
    differences = tasks.differences if headline else []
    test = sign_flips(differences) if differences else None
    spread = spread_between([float(each) for each in differences])
    return WorkflowPair(
        tasks=len(cells),
        figure_a=_mean(tasks.a) if differences else None,
        figure_b=_mean(tasks.b) if differences else None,
        difference=float(sum(differences) / len(differences)) if differences else None,
        interval=shown(tasks.interval()) if differences else None,
        low=math.fsum(b.low - a.high for a, b in sides) / len(sides),
        high=math.fsum(b.high - a.low for a, b in sides) / len(sides),
        p=None if test is None else test.p,
        p_holm=None,
        test=None if test is None else test.method,
        detectable=minimum_detectable(len(differences), spread) if spread else None,
    )


def _mean(tasks: Sequence[tuple[int, int]]) -> float:
    return math.fsum(passes / attempts for passes, attempts in tasks) / len(tasks)


def _task_pair(a: CellResults, b: CellResults, rule: str) -> TaskPair:
    first, second = rates(a.attempts), rates(b.attempts)
    counts = _counted(a, rule), _counted(b, rule)
    valid = [(side.passed, side.passed + side.failed) for side in (first, second)]
    both = all(attempts for _, attempts in valid)
    return TaskPair(
        task=a.task,
        layer=a.layer,
        a=SideCell(rates=first, attempts=tuple(map(_mark, a.attempts))),
        b=SideCell(rates=second, attempts=tuple(map(_mark, b.attempts))),
        difference=float(Fraction(*counts[1]) - Fraction(*counts[0])) if both else None,
        p=unlike_passes(*valid[1], *valid[0]) if both and a.layer == "regression" else None,
        p_holm=None,
    )


def _mark(attempt: AttemptResults) -> AttemptMark:
    stands: Literal["pass", "fail", "invalid", "open"]
    if attempt.result is not None:
        stands = "pass" if attempt.passed else "fail"
    else:
        stands = "open" if attempt.open else "invalid"
    return AttemptMark(attempt=attempt.attempt, index=attempt.index, stands=stands)


def _lost(cells: Sequence[CellResults]) -> Lost:
    attempts = [attempt for cell in cells for attempt in cell.attempts]
    counts = rates(attempts)
    causes = Counter(
        f"{attempt.last.blame}: {attempt.last.cause}"
        for attempt in attempts
        if attempt.result is None and attempt.last is not None and not attempt.open
    )
    return Lost(
        planned=counts.planned,
        invalid=counts.invalid,
        open=counts.open,
        causes=dict(causes.most_common()),
    )


def _p_values(pairs: Iterable[PairScore]) -> Iterator[float]:
    for pair in pairs:
        if pair.workflow is not None and pair.workflow.p is not None:
            yield pair.workflow.p
        yield from (task.p for task in pair.tasks if task.p is not None)


def _with_holm(pair: PairScore, adjusted: Iterator[float]) -> PairScore:
    """The pair with its share of the adjusted p-values, in the order of ``_p_values``."""
    workflow = pair.workflow
    if workflow is not None and workflow.p is not None:
        workflow = workflow.model_copy(update={"p_holm": next(adjusted)})
    tasks = tuple(
        task if task.p is None else task.model_copy(update={"p_holm": next(adjusted)})
        for task in pair.tasks
    )
    return pair.model_copy(update={"workflow": workflow, "tasks": tasks})
