"""``apiary regrade``: what the present verifiers say to the evidence of a sweep."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.names import find_sweep
from scheduler.cli.options import (
    data_console,
    human_console,
    json_option,
    opened,
    store_option,
    sweep_argument,
)
from scheduler.cli.tasks.folders import Dataset, open_dataset, path_option
from scheduler.lock import Lock, read_locks
from scheduler.report.collect import collect_under
from scheduler.report.names import counted, place_of, short_name
from scheduler.report.results import SweepResults
from scheduler.report.tables import plain_table, titled
from scheduler.report.transcript import visible

if TYPE_CHECKING:
    from scheduler.dataset.regrade_format import NotRegraded, Regrade, Regraded
    from scheduler.dataset.regrading import PresentTask
    from workers.storage import Store

NODE = "regrade"
MAX_ROWS = 40


@click.command("regrade")
@sweep_argument
@click.option(
    "--tasks",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only these tasks of the sweep, by name or glob; repeatable.",
)
@path_option
@store_option
@json_option
def command(
    sweep: str, names: tuple[str, ...], path: Path | None, store_url: str | None, as_json: bool
) -> int:
    """Verify stored evidence again with the present verifiers.

    No agent runs; Docker is needed. The first verdicts stay; what would change is shown, and kept
    beside the sweep's report. A try that lacks what its task needs is listed. The exit code is 4
    if no try could be verified again.
    """
    store = opened(store_url)
    lock = read_locks(store, find_sweep(store, sweep))[-1]
    results = _wanted(collect_under(store, lock), names)
    dataset = open_dataset(path)
    made = asyncio.run(_regrade(store, lock, results, dataset, as_json))
    # Here because it needs Docker's client, which takes a while to load.
    from scheduler.dataset.regrading import keep

    key = keep(store, made)
    if as_json:
        click.echo(made.to_json())
    else:
        console = data_console()
        show_regrade(made, console)
        console.print(f"kept: {place_of(store.url, key)}", markup=False, soft_wrap=True)
    return Exit.DONE if made.regraded else Exit.INCONCLUSIVE


def show_regrade(made: Regrade, console: Console) -> None:
    """Prints what would change, what was left out, and a count."""
    digests = [each for each in made.tasks if each.old_digest != each.new_digest]
    if digests:
        table = plain_table("task")
        for heading in ("digest then", "digest now"):
            table.add_column(heading)
        for task in digests:
            table.add_row(short_name(task.task), task.old_digest[:12], task.new_digest[:12])
        console.print(titled("Tasks that changed since", table))
    if made.changes:
        console.print(titled("What would change", _changes(made.changes)))
    if made.left_out:
        console.print(titled("Not verified again", _left_out(made.left_out)))
    changed = sum(each.changed for each in made.regraded)
    tries = "1 try" if len(made.regraded) == 1 else f"{len(made.regraded)} tries"
    console.print(
        f"{tries} verified again: {counted(changed, 'verdict')} would change, "
        f"{len(made.changes) - changed} more in reward or dimensions; {len(made.left_out)} left out"
    )


async def _regrade(
    store: Store, lock: Lock, results: SweepResults, dataset: Dataset, quiet: bool
) -> Regrade:
    from scheduler.dataset.regrading import regrade
    from workers.container.docker import DockerEngine

    present = _present(dataset, {cell.task for cell in results.cells})
    shown = human_console()
    step = 0

    def told(done: int, of: int) -> None:
        nonlocal step
        if not quiet and of and (done == 0 or done == of or done >= step):
            step = done + max(1, of // 10)
            shown.print(f"verified again: {done} of {of}", highlight=False)

    engine = await DockerEngine.open(NODE)
    try:
        return await regrade(engine, store, lock, results, present, dataset.kit, told)
    finally:
        await engine.close()


def _present(dataset: Dataset, wanted: set[str]) -> Mapping[str, PresentTask]:
    """The data set's tasks that the sweep has too, by whole name."""
    from scheduler.dataset.regrading import PresentTask

    bare = {short_name(name) for name in wanted}
    # A folder need not be called as its task is; but no other task has to be right.
    folders = [folder for folder in dataset.tasks if folder.name in bare] or dataset.tasks
    tasks = [PresentTask(folder, dataset.load(folder)) for folder in folders]
    return {each.task.name: each for each in tasks if each.task.name in wanted}


def _wanted(results: SweepResults, names: tuple[str, ...]) -> SweepResults:
    """The results of the tasks that are named; of all where none is."""
    if not names:
        return results
    known = sorted({cell.task for cell in results.cells})
    chosen = set()
    for name in names:
        found = {task for task in known if fnmatchcase(task, name) or _bare_fits(task, name)}
        if not found:
            listed = ", ".join(map(short_name, known))
            raise UsageFault(f"{results.sweep} has no task {name!r}; it has {listed}")
        chosen |= found
    return replace(results, cells=tuple(cell for cell in results.cells if cell.task in chosen))


def _bare_fits(task: str, name: str) -> bool:
    return fnmatchcase(short_name(task), name)


def _changes(changes: tuple[Regraded, ...]) -> Table:
    table = plain_table("task")
    for heading in ("condition", "attempt", "verdict", "reward", "dimensions"):
        table.add_column(heading, overflow="fold")
    for each in changes[:MAX_ROWS]:
        verdict = f"{each.old_verdict} → {each.new_verdict}" if each.changed else each.old_verdict
        table.add_row(
            short_name(each.task),
            each.condition,
            each.attempt[:12],
            verdict,
            f"{_number(each.old_reward)} → {_number(each.new_reward)}",
            Text(visible(each.fault or _moved(each))),
        )
    if len(changes) > MAX_ROWS:
        table.add_row("…", f"{len(changes) - MAX_ROWS} more in the document that is kept")
    return table


def _moved(each: Regraded) -> str:
    return ", ".join(
        f"{name} {_number(then)} → {_number(now)}" for name, (then, now) in each.moved.items()
    )


def _left_out(rows: tuple[NotRegraded, ...]) -> Table:
    table = plain_table("task")
    for heading in ("condition", "attempt", "why"):
        table.add_column(heading, overflow="fold")
    for each in rows[:MAX_ROWS]:
        reason = Text(visible(each.reason))
        table.add_row(short_name(each.task), each.condition, each.attempt[:12], reason)
    if len(rows) > MAX_ROWS:
        table.add_row("…", f"{len(rows) - MAX_ROWS} more in the document that is kept")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
