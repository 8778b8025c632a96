"""``apiary gate``: is a sweep still as good as its baseline?"""

from __future__ import annotations

import math
import re

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler.cli.compare import named_table, points
from scheduler.cli.exits import Exit
from scheduler.cli.names import find_sweep
from scheduler.cli.options import data_console, json_option, opened, store_option
from scheduler.report.gate import decide
from scheduler.report.gate_format import BehaviourGate, Decision, Gate, Scope
from scheduler.report.names import short_name
from scheduler.report.sides import read_side
from scheduler.report.summary import Rates
from scheduler.report.tables import plain_table, titled

EXITS = {
    Decision.PASS: Exit.DONE,
    Decision.REGRESSION: Exit.REGRESSION,
    Decision.INCONCLUSIVE: Exit.INCONCLUSIVE,
}
STYLES = {
    Decision.PASS: ("✓", "green"),
    Decision.REGRESSION: ("✗", "red"),
    Decision.INCONCLUSIVE: ("?", "yellow"),
}


class Margin(click.ParamType):  # type: ignore[type-arg]  # generic in its stub alone
    """Percentage points, ``5pp``, or a plain difference of rates, ``0.05``."""

    name = "margin"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The difference of rates."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(pp)?\s*", str(value))
        if match is None:
            self.fail(f"{value!r}: write percentage points as 5pp, or a difference as 0.05")
        margin = float(match[1]) / (100 if match[2] else 1)
        if not (math.isfinite(margin) and 0 < margin < 1):
            points = not match[2] and 1 <= margin < 100
            meant = f"; did you mean {match[1]}pp?" if points else ""
            self.fail(f"{value!r}: a margin is above 0 and below 100pp, or 1 without pp{meant}")
        return margin


@click.command("gate")
@click.argument("sweep", metavar="SWEEP")
@click.option("--baseline", required=True, metavar="SWEEP", help="The sweep it is held against.")
@click.option(
    "--margin",
    type=Margin(),
    default="5pp",
    show_default=True,
    metavar="POINTS",
    help="How far the workflow rate may fall: 5pp, or 0.05.",
)
@click.option(
    "--scope",
    type=click.Choice(["these-tasks", "such-tasks"]),
    default="these-tasks",
    show_default=True,
    help="Whether the workflow layer may not fall on the tasks that ran, or on tasks like them.",
)
@click.option("--condition", metavar="NAME", help="Only this condition of SWEEP.")
@click.option("--baseline-condition", metavar="NAME", help="Against this one of the baseline.")
@store_option
@json_option
def command(
    sweep: str,
    baseline: str,
    margin: float,
    scope: Scope,
    condition: str | None,
    baseline_condition: str | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Say whether a sweep is as good as its baseline.

    Behaviours of the regression layer are judged one by one: lost is what passes so rarely that
    a kept behaviour hardly ever would. The workflow layer passes if the 95 % interval of its mean
    difference lies above -POINTS, and has regressed if it lies below. The exit code is 0 for a
    pass, 3 for a regression, 4 if the attempts do not tell; docs/statistics.md has the rules.
    """
    store = opened(store_url)
    now = read_side(store, find_sweep(store, sweep))
    before = read_side(store, find_sweep(store, baseline))
    found = decide(now, before, margin, condition, baseline_condition, scope)
    if as_json:
        click.echo(found.to_json())
    else:
        show_gate(found, data_console())
    for warning in found.warnings:
        click.echo(f"! {warning}", err=True)
    return EXITS[found.decision]


def show_gate(found: Gate, console: Console) -> None:
    """Prints a gate's answer, what it rests on first."""
    if found.behaviours:
        console.print(titled("Regression: is each behaviour kept?", _behaviours(found)))
    if found.workflow:
        title = f"Workflow: may fall by {points(found.margin).removeprefix('+')}"
        console.print(titled(title, _workflow(found)))
    for reason in found.reasons:
        console.print(f"- {reason}", markup=False, soft_wrap=True)
    sign, style = STYLES[found.decision]
    console.print(
        Text(f"{sign} {found.decision}: {found.sweep} against {found.baseline}", style=style),
        soft_wrap=True,
    )


def _behaviours(found: Gate) -> Table:
    table = named_table("behaviour", [short_name(each.task) for each in found.behaviours])
    for heading in ("condition", "baseline", "now", "status", "p(Holm)", "p(Fisher)"):
        table.add_column(heading, justify="left" if heading in ("condition", "status") else "right")
    for each in found.behaviours:
        table.add_row(
            short_name(each.task),
            each.condition,
            _counts(each.baseline),
            _counts(each.now),
            _status(each),
            "-" if each.p_lost is None else f"{each.p_lost:.2g}",
            "-" if each.p_fisher is None else f"{each.p_fisher:.2g}",
        )
    return table


def _status(each: BehaviourGate) -> Text:
    if each.decision is None:
        return Text(f"– {each.status.replace('_', ' ')}", style="dim")
    sign, style = STYLES[each.decision]
    return Text(f"{sign} {each.status}", style=style)


def _workflow(found: Gate) -> Table:
    table = plain_table("condition")
    scope = found.scope.replace("-", " ")
    for heading in ("tasks", "change", f"95 % on {scope}", "bounds", ""):
        table.add_column(heading, justify="right")
    for each in found.workflow:
        pair = each.pair
        sign, style = STYLES[each.decision]
        interval = each.interval
        table.add_row(
            each.condition,
            str(pair.tasks),
            points(pair.difference),
            "-" if interval is None else f"[{points(interval.low)}, {points(interval.high)}]",
            f"{points(pair.low)} … {points(pair.high)}",
            Text(f"{sign} {each.decision}", style=style),
        )
    return table


def _counts(rates: Rates | None) -> str:
    if rates is None:
        return "-"
    missing = rates.invalid + rates.open
    return f"{rates.passed}/{rates.planned}" + (f" ({missing} missing)" if missing else "")
