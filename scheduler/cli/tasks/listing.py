"""``apiary tasks list``."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.text import Text

from scheduler.cli.exits import Exit
from scheduler.cli.options import data_console, json_option
from scheduler.cli.tasks.folders import open_dataset, path_option
from scheduler.plan import default_count
from scheduler.report.names import short_name
from scheduler.report.tables import plain_table
from workers.contract.task import Task


@click.command("list", short_help="Print every task.")
@path_option
@json_option
def list_tasks(path: Path | None, as_json: bool) -> int:
    """Print every task: name, layer, attempts, difficulty, digest."""
    dataset = open_dataset(path)
    tasks = sorted(map(dataset.load, dataset.tasks), key=lambda task: task.name)
    if as_json:
        click.echo(json.dumps([document(task) for task in tasks], sort_keys=True))
        return Exit.DONE
    table = plain_table()
    for heading in ("task", "layer", "k", "difficulty", "digest"):
        table.add_column(heading, no_wrap=heading == "digest", overflow="fold")
    for task in tasks:
        name = Text(short_name(task.name))
        name.append(f"\n{task.config.task.description}", style="dim")
        table.add_row(
            name,
            task.layer,
            str(default_count(task)),
            task.config.metadata.difficulty,
            task.digest[:12],
        )
    data_console().print(table)
    return Exit.DONE


def document(task: Task) -> dict[str, object]:
    """A task in a few words, for machines."""
    return {
        "name": task.name,
        "layer": task.layer,
        "attempts": default_count(task),
        "difficulty": task.config.metadata.difficulty,
        "description": task.config.task.description,
        "digest": task.digest,
    }
