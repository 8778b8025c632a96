"""``apiary tasks``: what a data set has, whether it is right, and how it grows."""

from __future__ import annotations

import click

from scheduler.cli.tasks.checking import check_tasks
from scheduler.cli.tasks.listing import list_tasks
from scheduler.cli.tasks.locking import lock_tasks
from scheduler.cli.tasks.making import new_task
from scheduler.cli.tasks.showing import show_task


@click.group("tasks")
def command() -> None:
    """List, show, check and make tasks."""


for each in (list_tasks, show_task, check_tasks, new_task, lock_tasks):
    command.add_command(each)
