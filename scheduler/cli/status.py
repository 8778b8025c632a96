"""``apiary status``: how far sweeps are, as their store tells."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from scheduler.cli.exits import Exit
from scheduler.cli.names import find_sweep, list_sweeps
from scheduler.cli.options import data_console, human_console, json_option, opened, store_option
from scheduler.report.collect import collect
from scheduler.report.score import score
from scheduler.report.summary import Summary
from scheduler.report.tables import plain_table


@click.command("status")
@click.argument("sweep", required=False, metavar="[SWEEP]")
@store_option
@json_option
def command(sweep: str | None, store_url: str | None, as_json: bool) -> int:
    """Show how far sweeps are.

    Without SWEEP, all sweeps of the store. What a running driver holds in its hands is not in
    the store yet and counts as open.
    """
    store = opened(store_url)
    names = list_sweeps(store) if sweep is None else [find_sweep(store, sweep)]
    summaries = [score(collect(store, name)) for name in names]
    if as_json:
        click.echo(json.dumps([_document(summary) for summary in summaries], sort_keys=True))
    elif summaries:
        data_console().print(_table(summaries))
    else:
        human_console().print(
            f"{store.url}: there is no sweep in this store yet", markup=False, soft_wrap=True
        )
    return Exit.DONE


def _document(summary: Summary) -> dict[str, Any]:
    return {
        "sweep": summary.sweep,
        "conditions": [
            {
                "condition": each.condition,
                "planned": each.rates.planned,
                "passed": each.rates.passed,
                "failed": each.rates.failed,
                "invalid": each.rates.invalid,
                "open": each.rates.open,
                "tries": each.rates.tries,
                "invalid_tries": each.rates.invalid_tries,
                "coverage": each.rates.coverage,
            }
            for each in summary.conditions
        ],
    }


def _table(summaries: list[Summary]) -> Table:
    table = plain_table()
    for heading in ("sweep", "condition"):
        table.add_column(heading, overflow="fold")
    for heading in ("planned", "passed", "failed", "invalid", "open", "invalid tries"):
        table.add_column(heading, justify="right")
    for summary in summaries:
        for place, each in enumerate(summary.conditions):
            rates = each.rates
            table.add_row(
                summary.sweep if place == 0 else "",
                each.condition,
                str(rates.planned),
                Text(str(rates.passed), style="green" if rates.passed else "dim"),
                Text(str(rates.failed), style="red" if rates.failed else "dim"),
                Text(str(rates.invalid), style="yellow" if rates.invalid else "dim"),
                Text(str(rates.open), style="yellow" if rates.open else "dim"),
                str(rates.invalid_tries),
            )
    return table
