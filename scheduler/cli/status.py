"""``apiary status``: how far sweeps are, as their store tells."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from scheduler.claim_format import at_work, described
from scheduler.cli.exits import Exit
from scheduler.cli.growth import committed, differences, growth_document, growth_lines
from scheduler.cli.names import find_sweep, list_sweeps
from scheduler.cli.options import data_console, human_console, json_option, opened, store_option
from scheduler.lock import LockError, read_locks
from scheduler.report.collect import collect
from scheduler.report.names import counted
from scheduler.report.score import score
from scheduler.report.summary import Rates, Summary
from scheduler.report.tables import plain_table
from workers.contract.base import FormatError
from workers.storage import Store


@click.command("status")
@click.argument("sweep", required=False, metavar="[SWEEP]")
@store_option
@json_option
def command(sweep: str | None, store_url: str | None, as_json: bool) -> int:
    """Show how far sweeps are.

    Without SWEEP, all sweeps of the store; one that cannot be read is named, and the exit code is 5
    then. What a running driver holds in its hands is not in
    the store yet and counts as open. For a sweep that has grown, what each of its locks changed.
    """
    store = opened(store_url)
    if sweep is None:
        summaries, faults = _all(store)
    else:
        summaries, faults = [score(collect(store, find_sweep(store, sweep)))], {}
    if as_json:
        shown = [{**_document(each), "locks": _growth(store, each.sweep)} for each in summaries]
        shown = [{**each, "driver": _driver(store, each["sweep"])} for each in shown]
        shown += [{"sweep": name, "fault": fault} for name, fault in faults.items()]
        click.echo(json.dumps(shown, sort_keys=True))
    elif summaries:
        data_console().print(_table(summaries))
        for summary in summaries:
            _print_growth(store, summary.sweep)
            _print_dead(summary)
            _print_driver(store, summary.sweep)
    elif not faults:
        human_console().print(
            f"{store.url}: there is no sweep in this store yet", markup=False, soft_wrap=True
        )
    for name, fault in faults.items():
        human_console().print(f"✗ {name} cannot be read: {fault}", markup=False, soft_wrap=True)
    return Exit.INFRASTRUCTURE if faults else Exit.DONE


def _all(store: Store) -> tuple[list[Summary], dict[str, str]]:
    """Every sweep that can be read, and why the others cannot: they hide none."""
    summaries, faults = [], {}
    for name in list_sweeps(store):
        try:
            summaries.append(score(collect(store, name)))
        except (FormatError, LockError) as error:
            faults[name] = str(error)
    return summaries, faults


def _driver(store: Store, sweep: str) -> dict[str, Any] | None:
    """The driver that is at work on a sweep, as far as its signs of life in the store tell."""
    claim = at_work(store, sweep)
    if claim is None:
        return None
    return {
        "generation": claim.generation,
        "host": claim.host,
        "started_at": claim.started_at,
        "ray_address": claim.ray_address,
    }


def _print_driver(store: Store, sweep: str) -> None:
    claim = at_work(store, sweep)
    if claim is not None:
        human_console().print(
            f"{sweep}: {described(claim)} is at work since {claim.started_at}, or died without "
            "a word",
            markup=False,
            soft_wrap=True,
        )


def _growth(store: Store, sweep: str) -> list[dict[str, Any]]:
    """What every lock after the first changed."""
    changes = differences(read_locks(store, sweep))
    done = committed(store, sweep) if changes else frozenset()
    return [growth_document(sweep, each, done) for each in changes]


def _print_growth(store: Store, sweep: str) -> None:
    changes = differences(read_locks(store, sweep))
    done = committed(store, sweep) if changes else frozenset()
    for each in changes:
        head = f"{sweep} grew to lock-{each.number}.json at {each.grown_at}:"
        data_console().print(head, markup=False, soft_wrap=True)
        for line in growth_lines(sweep, each, done):
            data_console().print(f"  {line}", markup=False, soft_wrap=True)


def _dead(summary: Summary) -> int:
    return sum(rates.invalid for _, _, rates in _rows(summary))


def _print_dead(summary: Summary) -> None:
    dead = _dead(summary)
    if dead:
        human_console().print(
            f"{summary.sweep}: {counted(dead, 'attempt')} dead, tries spent without a verdict; "
            f"fresh tries: apiary resume {summary.sweep} --retry-dead",
            markup=False,
            soft_wrap=True,
        )


def _document(summary: Summary) -> dict[str, Any]:
    return {
        "sweep": summary.sweep,
        "dead": _dead(summary),
        "conditions": [
            {
                "condition": name,
                "planned": rates.planned,
                "passed": rates.passed,
                "failed": rates.failed,
                "invalid": rates.invalid,
                "open": rates.open,
                "tries": rates.tries,
                "invalid_tries": rates.invalid_tries,
                "coverage": rates.coverage,
                "canary": canary,
            }
            for name, canary, rates in _rows(summary)
        ],
    }


def _rows(summary: Summary) -> list[tuple[str, str | None, Rates]]:
    """Name, kind of canary and counts of every condition, canaries last."""
    rows: list[tuple[str, str | None, Rates]] = [
        (each.condition, None, each.rates) for each in summary.conditions
    ]
    canaries = (each for each in summary.canaries if each.condition)
    return rows + [(each.condition, each.kind, each.rates) for each in canaries]


def _table(summaries: list[Summary]) -> Table:
    table = plain_table()
    for heading in ("sweep", "condition"):
        table.add_column(heading, overflow="fold")
    for heading in ("planned", "passed", "failed", "invalid", "open", "invalid tries"):
        table.add_column(heading, justify="right")
    for summary in summaries:
        for place, (name, _, rates) in enumerate(_rows(summary)):
            table.add_row(
                summary.sweep if place == 0 else "",
                name,
                str(rates.planned),
                Text(str(rates.passed), style="green" if rates.passed else "dim"),
                Text(str(rates.failed), style="red" if rates.failed else "dim"),
                Text(str(rates.invalid), style="yellow" if rates.invalid else "dim"),
                Text(str(rates.open), style="yellow" if rates.open else "dim"),
                str(rates.invalid_tries),
            )
    return table
