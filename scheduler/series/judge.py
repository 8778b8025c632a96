"""A run held against those before it: what it came to, and what moved. Pure but for reading.

Two questions, two means. *Is this run alone as good as its baseline?* The gate of the report
answers, and its word stands in the record. *Has the agent become worse?* Asked after every run of a
year, a gate that errs once in twenty times would cry wolf twice a year and more, so that an alarm
is raised by the sequential test alone, whose rate of false alarms is that of a whole year.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from scheduler.lock import lock_numbers
from scheduler.report.gate import decide
from scheduler.report.gate_format import Decision, Gate
from scheduler.report.intervals import fixed
from scheduler.report.names import short_name
from scheduler.report.sides import NotComparableError, read_side
from scheduler.series.records import Outcome, read_time, stamp
from scheduler.series.schedule_file import GateRule
from scheduler.series.sequential import (
    MOST_BEFORE,
    RECOVERED_P,
    RECOVERED_RUNS,
    WINDOWS,
    Count,
    Run,
    against,
    limit_of,
    loudest,
)
from scheduler.series.trend import Measured
from scheduler.series.trend_format import (
    Break,
    Judgement,
    LineTest,
    TrendCondition,
    TrendRecord,
)
from workers.storage.interface import Store

ENDED: dict[str, Outcome] = {
    "budget": "budget",
    "deadline": "deadline",
    "cancelled": "cancelled",
    "outage": "outage",
    "infrastructure": "outage",
}
"""How a sweep ended to what its run came to, where that says it."""


def judge(
    store: Store,
    sweep: str,
    now: Measured,
    state: str,
    reason: str,
    before: Sequence[TrendRecord],
    breaks: Sequence[Break],
    rule: GateRule,
    runs_a_year: int,
) -> Judgement:
    """What a run came to.

    Args:
        store: where the sweeps are.
        sweep: of the run.
        now: what it came to by itself.
        state: how its sweep ended.
        reason: why, in words.
        before: the series' lines before it, in order.
        breaks: what is another one than in the run before.
        rule: of the schedule.
        runs_a_year: how often the series runs.

    Raises:
        FormatError: a record of the baseline is not of this version's format.
        StoreError: the store refused.
    """
    earlier = [each for each in before if _is_after_pin(each, rule.baseline)]
    good = [each for each in earlier if each.counts]
    ended = ENDED.get(state)
    if ended is None and now.outage:
        ended, reason = "outage", now.outage
    if ended is not None:
        return Judgement(outcome=ended, reasons=(reason,) if reason else ())
    tests = tuple(_tests(now, good, rule, runs_a_year))
    fallen = [each for each in tests if each.fallen_since is not None]
    gate, why_not = _gate(store, sweep, _baselines(earlier, rule.baseline), rule, _sweep_of(before))
    across = _across(earlier, breaks, gate, tests)
    reasons = [*(_said(each) for each in fallen)]
    outcome: Outcome
    if fallen:
        outcome = "regression"
    elif gate is None:
        outcome = "baseline"
        reasons.append(why_not)
    elif gate.decision is Decision.PASS:
        outcome = "pass"
    elif _only_new_lines(gate):
        outcome = "baseline"
        reasons += gate.reasons
    elif gate.decision is Decision.INCONCLUSIVE and _pooled_pass(gate, now, good, rule.margin):
        outcome = "pass"
        reasons.append(f"the last runs together exclude a loss of {rule.margin:.1%}")
    else:
        outcome = "inconclusive"
        alone = "this run alone: " if gate.decision is Decision.REGRESSION else ""
        reasons += [f"{alone}{reason}" for reason in gate.reasons]
    return Judgement(
        outcome=outcome,
        reasons=tuple(reasons),
        baseline=None if gate is None else gate.baseline,
        gate=None if gate is None else gate.decision,
        tests=tests,
        across=across,
    )


def _tests(
    now: Measured, good: Sequence[TrendRecord], rule: GateRule, runs_a_year: int
) -> Iterator[LineTest]:
    """The workflow mean of each condition, and each of its behaviours."""
    lines: list[tuple[TrendCondition, str]] = []
    for condition in now.conditions:
        if any(cell.layer == "workflow" for cell in condition.cells):
            lines.append((condition, ""))
        lines += [(condition, cell.task) for cell in condition.cells if cell.layer == "regression"]
    limit = limit_of(rule.false_alarms_a_year, runs_a_year, len(lines))
    for condition, task in lines:
        yield _test(condition, task, good, limit)


def _test(
    condition: TrendCondition, task: str, good: Sequence[TrendRecord], limit: float
) -> LineTest:
    last = next((test for each in reversed(good) if (test := _find(each, condition, task))), None)
    since = None if last is None else last.fallen_since
    run = _run(condition, condition, task)
    if since is None:
        runs = [*_line(condition, task, good, _fallen(good, condition, task)), run]
        found = loudest(runs)
        alarm = found is not None and found.p <= limit
        if alarm and found is not None:
            kept = _stamps(condition, task, good, _fallen(good, condition, task))
            since = kept[-(found.window - 1)] if found.window > 1 else _THIS
        event: Literal["", "fell", "recovered"] = "fell" if alarm else ""
    else:
        # The runs before the fall are what it must come back to.
        fallen = _fallen(good, condition, task)
        reference = _line(condition, task, good, fallen)[-MOST_BEFORE:]
        latest = _line(condition, task, good[-(RECOVERED_RUNS - 1) :], frozenset())
        recent = [*latest, run]
        found = against(recent, reference)
        over = found is None or (len(recent) >= RECOVERED_RUNS and found.p > RECOVERED_P)
        since, event = (None, "recovered") if over else (since, "")
    return LineTest(
        condition=condition.condition,
        task=task,
        p=None if found is None else found.p,
        limit=limit,
        window=0 if found is None else found.window,
        recent=(0, 0) if found is None else found.recent,
        before=(0, 0) if found is None else found.before,
        fallen_since=since,
        event=event,
    )


_THIS = "this run"
"""Of ``fallen_since``, until whoever writes the record knows its due time."""


def with_due(judgement: Judgement, due_stamp: str) -> Judgement:
    """The judgement with the run's own due time where a fall began with it."""
    tests = tuple(
        each.model_copy(update={"fallen_since": due_stamp}) if each.fallen_since == _THIS else each
        for each in judgement.tests
    )
    return judgement.model_copy(update={"tests": tests})


def _stamp_of(record: TrendRecord) -> str:
    return stamp(read_time(record.due))


def _fallen(good: Sequence[TrendRecord], condition: TrendCondition, task: str) -> frozenset[str]:
    """The runs of a line that were worse: they are nothing to hold others against."""
    found: set[str] = set()
    for each in good:
        test = _find(each, condition, task)
        if test is not None and test.fallen_since is not None:
            first, last = test.fallen_since, _stamp_of(each)
            found |= {s for other in good if first <= (s := _stamp_of(other)) <= last}
    return frozenset(found)


def _find(record: TrendRecord, condition: TrendCondition, task: str) -> LineTest | None:
    if _same(record, condition) is None:
        return None
    for test in record.judgement.tests:
        if (test.condition, test.task) == (condition.condition, task):
            return test
    return None


def _same(record: TrendRecord, condition: TrendCondition) -> TrendCondition | None:
    return next((each for each in record.conditions if each.digest == condition.digest), None)


def _line(
    now: TrendCondition, task: str, good: Sequence[TrendRecord], without: frozenset[str]
) -> list[Run]:
    """The runs of one line: the same condition, and of tasks only those that are the same."""
    found = []
    for each in good:
        then = _same(each, now)
        if then is not None and _stamp_of(each) not in without:
            run = _run(then, now, task)
            if run:
                found.append(run)
    return found


def _stamps(
    now: TrendCondition, task: str, good: Sequence[TrendRecord], without: frozenset[str]
) -> list[str]:
    """The due times of the runs of ``_line``."""
    return [
        _stamp_of(each)
        for each in good
        if (then := _same(each, now)) is not None
        and _stamp_of(each) not in without
        and _run(then, now, task)
    ]


def _run(then: TrendCondition, now: TrendCondition, task: str) -> Run:
    digests = {cell.task: cell.task_digest for cell in now.cells}
    return {
        cell.task: Count(cell.passed, cell.passed + cell.failed, cell.missing)
        for cell in then.cells
        if digests.get(cell.task) == cell.task_digest
        and (cell.task == task if task else cell.layer == "workflow")
    }


def _is_after_pin(record: TrendRecord, baseline: str) -> bool:
    return baseline == "last_good" or _stamp_of(record) >= baseline


def _baselines(earlier: Sequence[TrendRecord], baseline: str) -> list[TrendRecord]:
    """What a run may be held against, the best first."""
    if baseline != "last_good":
        return [each for each in earlier if _stamp_of(each) == baseline]
    return [each for each in reversed(earlier) if each.judgement.outcome in ("pass", "baseline")]


def _gate(
    store: Store,
    sweep: str,
    baselines: Sequence[TrendRecord],
    rule: GateRule,
    series_has_runs: bool,
) -> tuple[Gate | None, str]:
    """(The gate's answer for this run alone, why there is none).

    Lines of a trend outlive the sweeps that they were made of: one that was removed from the store
    is passed over.
    """
    if not baselines:
        if rule.baseline != "last_good":
            return None, f"the pinned baseline {rule.baseline} is no run of this series before it"
        return None, (
            "no run before it was good: it is the baseline"
            if series_has_runs
            else "the first run of the series: it is the baseline"
        )
    there = (each.sweep for each in baselines if lock_numbers(store, each.sweep))
    found = next(there, None)
    if found is None:
        gone = baselines[0].sweep
        return None, f"{gone} is not in the store any more: this run is the baseline from here on"
    try:
        return decide(read_side(store, sweep), read_side(store, found), rule.margin), ""
    except NotComparableError as error:
        return None, f"{error}: it is the baseline from here on"


def _only_new_lines(gate: Gate) -> bool:
    """Whether nothing speaks against the run but that tasks are not those of the baseline.

    Held against a baseline without them, no later run could pass either.
    """
    behaviours = {each.status for each in gate.behaviours if each.decision is not Decision.PASS}
    moved = behaviours - {"not_kept_before", "new"}
    worse = any(each.decision is Decision.REGRESSION for each in gate.workflow)
    return bool(moved) and moved <= {"changed", "absent"} and not worse


def _pooled_pass(gate: Gate, now: Measured, good: Sequence[TrendRecord], margin: float) -> bool:
    """Whether the latest runs together exclude a fall of the margin, and no behaviour speaks."""
    if any(each.decision not in (None, Decision.PASS) for each in gate.behaviours):
        return False
    workflows = [
        each for each in now.conditions if any(cell.layer == "workflow" for cell in each.cells)
    ]
    return bool(workflows) and all(_pooled(each, good, margin) for each in workflows)


def _pooled(condition: TrendCondition, good: Sequence[TrendRecord], margin: float) -> bool:
    runs = [
        *_line(condition, "", good, _fallen(good, condition, "")),
        _run(condition, condition, ""),
    ]
    window = WINDOWS[-1]
    recent, before = runs[-window:], runs[-window - MOST_BEFORE : -window]
    tasks = sorted(set(recent[-1]) & {task for run in before for task in run})
    if not tasks or len(before) < window:
        return False
    sides: list[list[tuple[int, int]]] = []
    for side in (before, recent):
        counts = [[run[task] for run in side if task in run] for task in tasks]
        # What is missing counts as failed where a pass is claimed, and as passed before.
        lost = side is before
        sides.append(
            [
                (
                    sum(c.passed + (c.missing if lost else 0) for c in each),
                    sum(c.valid + c.missing for c in each),
                )
                for each in counts
            ]
        )
    return fixed(sides[0], sides[1]).low > -margin


def _across(
    earlier: Sequence[TrendRecord],
    breaks: Sequence[Break],
    gate: Gate | None,
    tests: Sequence[LineTest],
) -> tuple[str, ...]:
    """What has changed since the oldest run that this one is held against."""
    if not any(each.p is not None for each in tests) and gate is None:
        return ()
    most = MOST_BEFORE + WINDOWS[-1]
    texts = [
        f"{each.text} (at {_stamp_of(record)})"
        for record in earlier[-most:]
        if record is not earlier[0]
        for each in record.breaks
    ]
    texts += [each.text for each in breaks]
    return tuple(dict.fromkeys(texts))


def _said(test: LineTest) -> str:
    name = short_name(test.task) if test.task else "workflow"
    now, was = test.recent, test.before
    runs = "this run" if test.window == 1 else f"the last {test.window} runs"
    return (
        f"{name} under {test.condition}: {now[0]}/{now[1]} in {runs}, {was[0]}/{was[1]} before "
        f"(p = {test.p or 0.0:.1g})"
    )


def _sweep_of(before: Sequence[TrendRecord]) -> bool:
    return any(each.counts for each in before)
