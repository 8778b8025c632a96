"""``apiary tasks lock``: pins the digests of a data set."""

from __future__ import annotations

import json
from pathlib import Path

import click

from scheduler.cli.exits import Exit
from scheduler.cli.options import human_console, json_option
from scheduler.cli.tasks.folders import open_dataset, path_option
from scheduler.dataset.lock import changes, make_lock, read_lock, write_lock
from scheduler.report.names import counted


@click.command("lock", short_help="Pin the digests of all tasks.")
@path_option
@json_option
def lock_tasks(path: Path | None, as_json: bool) -> int:
    """Pin the digest of every task with the verifier kit, and tell what changed.

    A task with another digest is another task: it begins a new series in every trend.
    """
    dataset = open_dataset(path)
    if path is not None and dataset.tasks == (path,):
        dataset = open_dataset(dataset.folder)
    before = read_lock(dataset.folder)
    digests = {folder.name: dataset.load(folder).digest for folder in dataset.tasks}
    after = make_lock(digests, dataset.kit)
    written = write_lock(dataset.folder, after)
    lines = changes(before, after)
    if as_json:
        click.echo(json.dumps({"lock": str(written), "changes": lines}, sort_keys=True))
        return Exit.DONE
    for line in lines:
        click.echo(line)
    human_console().print(
        f"{written}: {counted(len(after.tasks), 'task')}, {len(lines)} changed", soft_wrap=True
    )
    return Exit.DONE
