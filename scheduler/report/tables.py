"""A ``Summary`` as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scheduler.report.names import counted, short_name
from scheduler.report.summary import (
    CellScore,
    ConditionScore,
    IntervalScore,
    Rates,
    Spent,
    Summary,
)
from scheduler.report.transcript import visible

WIDE = 6
"""Up to this many conditions stand side by side, one column each."""

MAX_CAUSES = 20
"""Rows of the table of causes; the page has all."""


def closing_tables(summary: Summary) -> RenderableType:
    """All that a finished sweep has to say, in the order in which it is read."""
    parts: list[RenderableType] = []
    for layer, table in (("regression", _regression(summary)), ("workflow", _workflow(summary))):
        if any(cell.layer == layer for cell in summary.cells):
            parts.append(table)
    parts.append(_conditions(summary))
    if summary.canaries:
        parts.append(_canaries(summary))
    if summary.superseded:
        parts.append(_superseded(summary))
    if summary.causes:
        parts.append(_causes(summary))
    parts.extend(Text(f"! {note}", style="yellow") for note in summary.notes)
    parts.extend(_withheld(summary.conditions))
    return Group(*parts)


def rate_text(rate: float | None) -> str:
    """A rate as a percentage, or a dash where there is none."""
    return "-" if rate is None else f"{rate:.1%}"


def interval_text(interval: IntervalScore | None) -> str:
    """An interval as ``[12.3%, 45.6%]``."""
    return "-" if interval is None else f"[{interval.low:.1%}, {interval.high:.1%}]"


def _regression(summary: Summary) -> Group:
    """One row per behaviour; regression rates are never averaged."""
    cells = [cell for cell in summary.cells if cell.layer == "regression"]
    return titled("Regression: behaviours kept (passed/attempts)", _cell_table(summary, cells))


def _cell_table(summary: Summary, cells: Sequence[CellScore]) -> Table:
    """Tasks by conditions where the conditions fit side by side, else a row per cell."""
    names = list(dict.fromkeys(condition.condition for condition in summary.conditions))
    table = plain_table("task")
    if len(names) > WIDE:
        table.add_column("condition")
        table.add_column("passed")
        for cell in cells:
            table.add_row(short_name(cell.task), cell.condition, _cell_text(cell))
        return table
    for name in names:
        table.add_column(name, overflow="fold")
    found = {(cell.task, cell.condition): cell for cell in cells}
    for task in dict.fromkeys(cell.task for cell in cells):
        row = [found.get((task, name)) for name in names]
        table.add_row(short_name(task), *(Text("-") if c is None else _cell_text(c) for c in row))
    return table


def _cell_text(cell: CellScore) -> Text:
    """``✓ 3/3``, ``✗ 0/3`` with the dimensions that were lost, ``? 1/3`` with what is missing."""
    rates = cell.rates
    counts = f"{rates.passed}/{rates.planned}"
    missing = [f"{rates.invalid} invalid"] if rates.invalid else []
    missing += [f"{rates.open} open"] if rates.open else []
    if missing:
        text = Text(f"? {', '.join((counts, *missing))}", style="yellow")
    elif rates.passed == rates.planned:
        text = Text(f"✓ {counts}", style="green")
    else:
        text = Text(f"✗ {counts}", style="red")
    if cell.lost_dimensions:
        text.append("\n" + ", ".join(map(visible, cell.lost_dimensions)), style="dim")
    return text


def _workflow(summary: Summary) -> Group:
    cells = [cell for cell in summary.cells if cell.layer == "workflow"]
    table = plain_table("condition")
    rewarded = any(_rewards_tell_more(condition) for condition in summary.conditions)
    headings = ("pass rate", "95 % interval", "bounds", "tasks", "pass@k", "pass^k")
    for heading in (*headings, *(("mean reward",) if rewarded else ())):
        table.add_column(heading, justify="right")
    for condition in summary.conditions:
        if condition.workflow is not None:
            mean = condition.workflow.mean_reward if condition.headline else None
            more = (("-" if mean is None else f"{mean:.3f}"),) if rewarded else ()
            table.add_row(condition.condition, *_workflow_row(condition, summary.rule), *more)
    return Group(
        titled("Workflow: pass rate, mean over tasks, with 95 % interval", table),
        titled("Workflow tasks (passed/attempts)", _cell_table(summary, cells)),
    )


def _rewards_tell_more(condition: ConditionScore) -> bool:
    """Whether there are rewards between nothing and all: else they say what the rate says."""
    score = condition.workflow
    told = None if score is None or score.valid_only is None else score.mean_reward
    return told is not None and score is not None and abs(told - (score.valid_only or 0.0)) > 1e-9


def _workflow_row(condition: ConditionScore, rule: str) -> Iterable[str | Text]:
    score = condition.workflow
    if score is None:
        return
    if condition.headline:
        yield Text(rate_text(score.figure(rule)), style="bold")
        yield interval_text(score.interval)
    else:
        yield Text("withheld", style="yellow")
        yield "-"
    yield f"{score.low:.1%} … {score.high:.1%}"
    yield (
        str(score.tasks)
        if score.tasks == score.tasks_valid
        else (f"{score.tasks_valid} of {score.tasks}")
    )
    last = score.k[-1] if score.k and condition.headline else None
    yield "-" if last is None else f"@{last.k} {last.pass_at:.1%} ({counted(last.tasks, 'task')})"
    yield "-" if last is None else f"^{last.k} {last.pass_all:.1%}"


def _conditions(summary: Summary) -> Group:
    table = plain_table("condition")
    some_open = any(condition.rates.open for condition in summary.conditions)
    headings = ("planned", "passed", "failed", "invalid", *(("open",) if some_open else ()))
    for heading in (*headings, "coverage", "tries", "cost", "without cache"):
        table.add_column(heading, justify="right")
    for condition in summary.conditions:
        rates = condition.rates
        table.add_row(
            condition.condition,
            str(rates.planned),
            Text(str(rates.passed), style="green" if rates.passed else ""),
            Text(str(rates.failed), style="red" if rates.failed else ""),
            Text(str(rates.invalid), style="yellow" if rates.invalid else ""),
            *((Text(str(rates.open), style="yellow" if rates.open else ""),) if some_open else ()),
            Text(f"{rates.coverage:.0%}", style="" if condition.headline else "yellow"),
            _tries_text(rates),
            dollars_text(condition.spent.cost_usd, condition.spent),
            dollars_text(condition.spent.uncached_cost_usd, condition.spent),
        )
    return titled("Attempts", table)


def _tries_text(rates: Rates) -> str:
    return (
        f"{rates.tries} ({rates.invalid_tries} invalid)"
        if rates.invalid_tries
        else str(rates.tries)
    )


def dollars_text(cost_usd: float, spent: Spent) -> str:
    """Dollars; a call whose cost nobody reported makes the sum a lower bound."""
    return f"{'≥ ' if spent.unknown_cost_calls else ''}${cost_usd:.4f}"


def _canaries(summary: Summary) -> Group:
    """What attempts with a known result say of the harness."""
    table = plain_table("canary")
    for heading in ("attempts", "invalid", "tries", "errors", "95 %", "unexpected", "95 %"):
        table.add_column(heading, justify="right")
    for row in summary.canaries:
        table.add_row(
            row.kind,
            str(row.rates.planned),
            str(row.rates.invalid),
            str(row.judged_tries),
            rate_text(row.error_rate),
            interval_text(row.error_interval),
            rate_text(row.noise_floor),
            interval_text(row.noise_interval),
        )
    return titled("Canaries: infrastructure errors (of tries), noise floor (of valid)", table)


def _superseded(summary: Summary) -> Group:
    """What was tried of tasks and conditions before they changed."""
    table = plain_table()
    for heading in ("task", "its digest", "condition", "its digest"):
        table.add_column(heading, overflow="fold")
    for heading in ("passed", "failed", "invalid"):
        table.add_column(heading, justify="right")
    for cell in summary.superseded:
        digests = (cell.task_digest[:12], cell.condition_digest[:12])
        counts = (cell.rates.passed, cell.rates.failed, cell.rates.invalid)
        table.add_row(
            short_name(cell.task), digests[0], cell.condition, digests[1], *map(str, counts)
        )
    return titled("Superseded by a changed task or condition: counts nowhere", table)


def _causes(summary: Summary) -> Group:
    table = plain_table("blame")
    for heading in ("cause", "condition", "task", "tries", "example"):
        table.add_column(
            heading, justify="right" if heading == "tries" else "left", overflow="fold"
        )
    for row in summary.causes[:MAX_CAUSES]:
        table.add_row(
            row.blame,
            row.cause,
            row.condition,
            short_name(row.task),
            str(row.tries),
            row.example[:12],
        )
    left = len(summary.causes) - MAX_CAUSES
    if left > 0:
        table.add_row("…", f"{left} more rows in the report", "", "", "", "")
    return titled("What was not a pass (tries)", table)


def _withheld(conditions: Sequence[ConditionScore]) -> list[Text]:
    return [
        Text(f"! {each.condition}: no headline, only bounds: {each.withheld}", style="yellow")
        for each in conditions
        if not each.headline
    ]


def plain_table(first: str | None = None) -> Table:
    """An empty table in the one style of all: a line under the headings and no frame.

    Titles are lines of their own (``titled``), since a table's own is folded to its width.
    """
    table = Table(header_style="dim", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    if first is not None:
        table.add_column(first, overflow="fold")
    return table


def titled(title: str, table: Table) -> Group:
    """A table under its title, with a blank line after it."""
    return Group(Text(title, style="bold"), table, Text())
