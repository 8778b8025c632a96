"""``apiary report``: the score of a sweep as it stands in its store."""

from __future__ import annotations

import click

from scheduler.cli.exits import Exit
from scheduler.cli.names import find_sweep
from scheduler.cli.options import data_console, json_option, opened, store_option, sweep_argument
from scheduler.report.collect import collect
from scheduler.report.page import write_report
from scheduler.report.score import score
from scheduler.report.tables import closing_tables


@click.command("report")
@sweep_argument
@store_option
@json_option
def command(sweep: str, store_url: str | None, as_json: bool) -> int:
    """Score a sweep again and write its page.

    SWEEP is an id, a unique prefix of one, or `latest`. It works while the sweep runs, too. The
    exit code is 4 if the coverage is too low for a headline.
    """
    store = opened(store_url)
    results = collect(store, find_sweep(store, sweep))
    summary = score(results)
    page = write_report(store, results, summary)
    if as_json:
        click.echo(summary.to_json())
    else:
        console = data_console()
        console.print(closing_tables(summary))
        console.print(f"report: {page}", soft_wrap=True)
    return Exit.DONE if summary.conclusive else Exit.INCONCLUSIVE
