"""``apiary compare``: two sweeps, or two conditions of one, task by task."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from scheduler.cli.exits import Exit
from scheduler.cli.names import find_sweep
from scheduler.cli.options import data_console, json_option, opened, store_option
from scheduler.report.comparison import compare
from scheduler.report.comparison_format import (
    Comparison,
    Lost,
    PairScore,
    SideCell,
    TaskPair,
    WorkflowPair,
)
from scheduler.report.names import counted, short_name
from scheduler.report.sides import read_side
from scheduler.report.tables import plain_table, rate_text, titled

MAX_MOVED = 40
"""Rows of the table of tasks that moved; ``--json`` has all."""
MAX_NAMED = 3
"""Attempts named of one of its rows and side."""
WIDEST_NAME = 48
"""Columns that a task's name gets before it is folded, however narrow the terminal is."""


@click.command("compare")
@click.argument("sweep_a", metavar="A")
@click.argument("sweep_b", metavar="[B]", required=False)
@click.option("--condition-a", metavar="NAME", help="A condition of A, by name or digest.")
@click.option("--condition-b", metavar="NAME", help="A condition of B, by name or digest.")
@store_option
@json_option
def command(
    sweep_a: str,
    sweep_b: str | None,
    condition_a: str | None,
    condition_b: str | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Compare two sweeps, or two conditions of one, task by task.

    A and B are sweeps; without B, both conditions are of A and must be named. Conditions are
    matched by digest, else by name. Differences are b - a. Tasks whose folder or verifiers differ
    are left out. The exit code is 4 if coverage leaves nothing but bounds.
    """
    if sweep_b is None and (condition_a is None or condition_b is None):
        raise click.UsageError("give two sweeps, or one with --condition-a and --condition-b")
    store = opened(store_url)
    a = read_side(store, find_sweep(store, sweep_a))
    name_b = a.sweep if sweep_b is None else find_sweep(store, sweep_b)
    b = a if name_b == a.sweep else read_side(store, name_b)
    found = compare(a, b, condition_a, condition_b)
    if as_json:
        click.echo(found.to_json())
    else:
        show_comparison(found, data_console())
    for warning in found.warnings:
        click.echo(f"! {warning}", err=True)
    some = any(not pair.withheld_a and not pair.withheld_b for pair in found.pairs)
    return Exit.DONE if some else Exit.INCONCLUSIVE


def show_comparison(found: Comparison, console: Console) -> None:
    """Prints a comparison as tables."""
    console.print(f"a: {found.a}\nb: {found.b}", markup=False, soft_wrap=True)
    for pair in found.pairs:
        console.print(Group(*_pair(pair, found)))
    if found.tests > 1:
        console.print(f"p-values with Holm's correction over {found.tests} tests stand as p(Holm)")


def points(difference: float | None) -> str:
    """A difference of rates in percentage points."""
    return "-" if difference is None else f"{100 * difference:+.1f} pp"


def named_table(heading: str, names: list[str]) -> Table:
    """A table whose first column has names, whole as far as ``WIDEST_NAME`` goes.

    Figures may take two lines; a name that is cut up can be neither read nor copied.
    """
    table = plain_table()
    widest = max(map(len, names), default=0)
    table.add_column(heading, overflow="fold", min_width=min(widest, WIDEST_NAME))
    return table


def _pair(pair: PairScore, found: Comparison) -> Iterator[Group | Text]:
    names = dict.fromkeys((pair.condition_a, pair.condition_b))
    yield Text("\n" + " → ".join(names), style="bold")
    for side, why in (("a", pair.withheld_a), ("b", pair.withheld_b)):
        if why:
            yield Text(f"! {side}: no headline, only bounds: {why}", style="yellow")
    if pair.workflow is not None:
        yield titled("Workflow: mean over shared tasks, b - a", _workflow(pair.workflow))
    regression = [task for task in pair.tasks if task.layer == "regression"]
    if regression:
        yield titled("Regression: behaviour by behaviour (passed/planned)", _tasks(regression))
        yield from _shown_by(regression)
    moved = [task for task in pair.moved if task.layer != "regression"]
    if moved:
        yield titled("Workflow tasks that moved (passed/planned)", _tasks(moved))
        yield from _shown_by(moved)
    elif pair.workflow is not None:
        yield Text("no workflow task moved\n")
    for side, sweep, lost in (("a", found.a, pair.lost_a), ("b", found.b, pair.lost_b)):
        yield Text(_lost(side, sweep, lost))


def _workflow(pair: WorkflowPair) -> Table:
    table = plain_table("tasks")
    for heading in ("a", "b", "b - a", "95 %", "bounds", "p", "p(Holm)", "detectable"):
        table.add_column(heading, justify="right")
    interval = pair.interval
    table.add_row(
        str(pair.tasks),
        rate_text(pair.figure_a),
        rate_text(pair.figure_b),
        Text(points(pair.difference), style="bold"),
        "-" if interval is None else f"[{points(interval.low)}, {points(interval.high)}]",
        f"{points(pair.low)} … {points(pair.high)}",
        _p(pair.p),
        _p(pair.p_holm),
        points(pair.detectable).removeprefix("+"),
    )
    return table


def _tasks(tasks: list[TaskPair]) -> Table:
    tested = any(task.p is not None for task in tasks)
    table = named_table("task", [short_name(task.task) for task in tasks[:MAX_MOVED]])
    for heading in ("a", "b", "b - a", *(("p", "p(Holm)") if tested else ())):
        table.add_column(heading, justify="right")
    for task in tasks[:MAX_MOVED]:
        fell = (task.difference or 0.0) < 0
        style = "red" if fell else "green" if task.difference else ""
        table.add_row(
            short_name(task.task),
            _counts(task.a),
            _counts(task.b),
            Text(points(task.difference), style=style),
            *((_p(task.p), _p(task.p_holm)) if tested else ()),
        )
    if len(tasks) > MAX_MOVED:
        table.add_row("…", f"{len(tasks) - MAX_MOVED} more with --json")
    return table


def _shown_by(tasks: list[TaskPair]) -> Iterator[Text]:
    """The attempts to look at, a line for each task that moved.

    As columns of the table they would leave no room for the tasks' names.
    """
    moved = [task for task in tasks[:MAX_MOVED] if task.difference]
    for task in moved:
        fell = (task.difference or 0.0) < 0
        a = _named(task.a, "pass" if fell else "fail")
        b = _named(task.b, "fail" if fell else "pass")
        yield Text(f"{short_name(task.task)}: a {a or '-'}; b {b or '-'}", style="dim")
    if moved:
        yield Text()


def _counts(cell: SideCell) -> str:
    rates = cell.rates
    missing = rates.invalid + rates.open
    return f"{rates.passed}/{rates.planned}" + (f" ({missing} missing)" if missing else "")


def _named(cell: SideCell, stands: str) -> str:
    """The attempts that show why a rate is where it is."""
    marks = [mark for mark in cell.attempts if mark.stands == stands]
    marks = marks or [mark for mark in cell.attempts if mark.stands in ("invalid", "open")]
    named = [f"{mark.attempt[:8]} {mark.stands}" for mark in marks[:MAX_NAMED]]
    return ", ".join([*named, *(["…"] if len(marks) > MAX_NAMED else [])])


def _lost(side: str, sweep: str, lost: Lost) -> str:
    if not lost.invalid and not lost.open:
        return f"{side}: no attempt lost of {lost.planned}"
    causes = ", ".join(f"{cause} ×{count}" for cause, count in lost.causes.items())
    parts = [f"{lost.invalid} invalid" + (f" ({causes})" if causes else "")] if lost.invalid else []
    parts += [f"{lost.open} open"] if lost.open else []
    return f"{side}: {', '.join(parts)} of {counted(lost.planned, 'attempt')} of {sweep}"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value >= 1e-4 else "<0.0001"
