"""``apiary report``: the score of a sweep as it stands in its store."""

from __future__ import annotations

import click

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.names import find_sweep
from scheduler.cli.options import data_console, json_option, opened, store_option, sweep_argument
from scheduler.report.collect import collect
from scheduler.report.comparison import compare
from scheduler.report.csv_rows import csv_text
from scheduler.report.page import write_report
from scheduler.report.score import score
from scheduler.report.sides import read_side
from scheduler.report.tables import closing_tables


@click.command("report")
@sweep_argument
@store_option
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print one CSV row per cell.")
@click.option("--baseline", metavar="SWEEP", help="Another sweep to stand against on the page.")
def command(
    sweep: str, store_url: str | None, as_json: bool, as_csv: bool, baseline: str | None
) -> int:
    """Score a sweep again and write its page.

    SWEEP is an id, a unique prefix of one, or `latest`. It works while the sweep runs, too. The
    exit code is 4 if the coverage is too low for a headline.
    """
    if as_json and as_csv:
        raise UsageFault("--json and --csv exclude each other: standard output takes one of them")
    store = opened(store_url)
    name = find_sweep(store, sweep)
    against = None
    if baseline is not None:
        other = read_side(store, find_sweep(store, baseline))
        against = compare(other, read_side(store, name))
    results = collect(store, name)
    summary = score(results)
    page = write_report(store, results, summary, against)
    if as_json:
        click.echo(summary.to_json())
    elif as_csv:
        click.echo(csv_text(summary), nl=False)
    else:
        console = data_console()
        console.print(closing_tables(summary))
        console.print(f"report: {page}", soft_wrap=True)
    return Exit.DONE if summary.conclusive else Exit.INCONCLUSIVE
