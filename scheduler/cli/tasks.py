"""``apiary tasks``: what a data set has."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.text import Text

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import data_console, json_option
from scheduler.manifest.roots import KIT_NAME, find_manifests
from scheduler.manifest.task import CONFIG_NAME, load_task
from scheduler.plan import default_count
from scheduler.report.names import short_name
from scheduler.report.tables import plain_table
from workers.contract.task import Task


@click.group("tasks")
def command() -> None:
    """List the tasks of a data set."""


@command.command("list")
@click.option(
    "--path",
    type=click.Path(path_type=Path),
    help="Folder of tasks; otherwise manifests/tasks.",
)
@json_option
def list_tasks(path: Path | None, as_json: bool) -> int:
    """Print every task: name, layer, attempts, difficulty, digest."""
    tasks = read_tasks(path or Path("manifests") / "tasks")
    if as_json:
        click.echo(json.dumps([_document(task) for task in tasks], sort_keys=True))
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


def read_tasks(path: Path) -> list[Task]:
    """Every task of a folder by name, each checked whole.

    Raises:
        UsageFault: there is no such folder, or no task in it.
        ManifestError: a task has faults.
    """
    if not path.is_dir():
        raise UsageFault(f"there is no folder {path}: name the folder of tasks with --path")
    kit = find_manifests(path) / KIT_NAME
    folders = sorted(child for child in path.iterdir() if (child / CONFIG_NAME).is_file())
    if not folders:
        raise UsageFault(f"{path} has no tasks: no folder with a {CONFIG_NAME} is in it")
    return sorted((load_task(folder, kit) for folder in folders), key=lambda task: task.name)


def _document(task: Task) -> dict[str, object]:
    return {
        "name": task.name,
        "layer": task.layer,
        "attempts": default_count(task),
        "difficulty": task.config.metadata.difficulty,
        "description": task.config.task.description,
        "digest": task.digest,
    }
