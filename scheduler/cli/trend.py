"""``apiary trend``: what the runs of a series came to, one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import data_console, json_option, opened, store_option
from scheduler.manifest.faults import nearest_name
from scheduler.report.names import counted
from scheduler.report.tables import plain_table, rate_text, titled
from scheduler.series.page import render
from scheduler.series.trend import read_trend
from scheduler.series.trend_format import TrendRecord
from scheduler.series.trend_view import TrendLine, lines_of, sparkline
from workers.storage import Store

STYLES = {"pass": "green", "baseline": "green", "regression": "red"}
LAST_RUNS = 10


@click.command("trend")
@click.argument("series", metavar="NAME")
@click.option(
    "-n",
    "--last",
    default=60,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="So many of the latest runs.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with pictures instead.",
)
@store_option
@json_option
def command(series: str, last: int, html: Path | None, store_url: str | None, as_json: bool) -> int:
    """Show what the runs of a series came to.

    One bar a run: ┊ stands where a task, an image, the agent, a condition, the resources or Apiary
    has changed, · for a run that says nothing of the agent.
    """
    store = opened(store_url)
    trend = read_trend(store, series, last)
    if not trend:
        raise UsageFault(_missing(store, series))
    if html is not None:
        try:
            html.write_text(render(series, trend), "utf-8")
        except OSError as error:
            raise UsageFault(f"--html: {html} cannot be written: {error.strerror}") from error
        click.echo(str(html))
        return Exit.DONE
    if as_json:
        runs = [record.model_dump(mode="json") for record in trend]
        click.echo(json.dumps({"series": series, "runs": runs}, sort_keys=True))
        return Exit.DONE
    show(series, trend, data_console())
    return Exit.DONE


def show(series: str, trend: list[TrendRecord], console: Console) -> None:
    """Prints lines, breaks and the last runs."""
    console.print(titled(f"{series}: {counted(len(trend), 'run')}", _lines(lines_of(trend))))
    broken = [(record.due, each.text) for record in trend for each in record.breaks]
    for due, text in broken:
        console.print(Text(f"┊ {due}: {text}"), soft_wrap=True)
    console.print(titled("Last runs", _runs(trend[-LAST_RUNS:])))


def _lines(lines: tuple[TrendLine, ...]) -> Table:
    table = plain_table("line")
    table.add_column("runs", no_wrap=True)
    table.add_column("last", justify="right")
    table.add_column("95 %", justify="right")
    for line in lines:
        point = line.last
        fallen = bool(line.points) and line.points[-1].fallen
        table.add_row(
            Text(line.name, style="red" if fallen else ""),
            sparkline(line),
            rate_text(None if point is None else point.rate),
            "-"
            if point is None or point.low is None or point.high is None
            else f"[{point.low:.0%}, {point.high:.0%}]",
        )
    return table


def _runs(trend: list[TrendRecord]) -> Table:
    table = plain_table("due")
    for heading in ("came to", "coverage", "cost", "why"):
        table.add_column(heading)
    for record in trend:
        outcome = record.judgement.outcome
        why = "; ".join(record.judgement.reasons[:2])
        table.add_row(
            record.due,
            Text(outcome, style=STYLES.get(outcome, "yellow")),
            ", ".join(rate_text(each.coverage) for each in record.conditions),
            f"${sum(each.cost_usd for each in record.conditions):.2f}",
            Text(why),
        )
    return table


def _missing(store: Store, series: str) -> str:
    names = store.children("series/")
    if not names:
        return f"{store.url}: no series has run in this store yet"
    near = nearest_name(series, names)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(names[:8])}"
    return f"{store.url}: there is no run of a series {series!r}; {hint}"
