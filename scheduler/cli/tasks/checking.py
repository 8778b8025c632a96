"""``apiary tasks check``: whether tasks are what they promise."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import data_console, human_console, json_option, store_option
from scheduler.cli.progress import progress
from scheduler.cli.tasks.folders import open_dataset, path_option
from scheduler.plan import BaseImage
from scheduler.report.names import counted
from scheduler.report.tables import plain_table
from scheduler.report.transcript import visible
from scheduler.settings import read_settings
from scheduler.watch.words import duration

if TYPE_CHECKING:
    from scheduler.dataset.report import DatasetReport, Mark

_SIGNS = {"ok": ("✓", "green"), "fault": ("✗", "red"), "broken": ("?", "yellow")}


@click.command("check", short_help="Check tasks: files, images, tests, attempts.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "check_all", is_flag=True, help="Every task of the data set.")
@click.option(
    "--attempts/--no-attempts",
    "make_attempts",
    default=True,
    help="Whether attempts with known results are made, which takes Ray and most of the time.",
)
@path_option
@store_option
@json_option
def check_tasks(
    names: tuple[str, ...],
    check_all: bool,
    make_attempts: bool,
    path: Path | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Check tasks: files, digests, images, tests, and attempts with known results.

    \b
    schema   every file has its format, and there is a proof beside the task
    digest   the folder is the one that the data set's lock pins
    hints    an instruction does not ask for what its task measures unasked
    facts    names, codes and counts agree in all files that have them
    image    the image is built
    tests    the task's tests, in its image, judge the proof's transcripts as it says
    solver   an attempt that does everything right passes
    refuser  an attempt that refuses fails as wrong
    silent   an attempt that says nothing fails as no_reply

    Attempts are made by the driver in a store of their own, which is removed unless --store
    names one. The exit code is 2 if a task is wrong, 5 if this machine could not tell.
    """  # noqa: D301 - click reads the backspace
    dataset = open_dataset(path)
    if names and check_all:
        raise UsageFault("name tasks, or give --all, not both")
    if not names and not check_all and len(dataset.tasks) > 1:
        raise UsageFault("name the tasks to check, or give --all")
    folders = dataset.chosen(names) if names else dataset.tasks
    # Here because Ray and Docker take a second to load, and a wrong name is told without them.
    from scheduler.cli.running import image_digest, stopped_by_operator
    from scheduler.dataset.check import Check

    reference = read_settings().base_image
    base = None
    if reference is not None:
        base = BaseImage(reference=reference, digest=image_digest(reference))
    with (
        _store(store_url, make_attempts) as store,
        progress(human_console(), as_json=False) as shown,
        stopped_by_operator() as stop,
    ):
        report = Check(
            folders,
            dataset.folder,
            dataset.manifests,
            base,
            store,
            shown=None if as_json else shown,
            stop=stop,
        ).run()
    if as_json:
        click.echo(json.dumps(report.document(), sort_keys=True))
    else:
        show_report(report)
    return exit_of_check(report)


def exit_of_check(report: DatasetReport) -> Exit:
    """What the exit code of a check says; a fault that is certain comes before doubt."""
    if report.interrupted:
        return Exit.INTERRUPTED
    if report.count("fault"):
        return Exit.USAGE
    return Exit.INFRASTRUCTURE if report.count("broken") else Exit.DONE


def show_report(report: DatasetReport) -> None:
    """The table on standard output, and below it a line for everything that is wrong."""
    console = data_console()
    console.print(_table(report))
    console.print(Text.assemble("personas of the shipped conditions: ", _sign(report.personas)))
    lines = [(task.name, *problem) for task in report.tasks for problem in task.problems()]
    lines += [("personas", "hints", line) for line in report.personas.lines]
    for name, column, line in lines:
        console.print(visible(f"{name}: {column}: {line}"), markup=False, soft_wrap=True)
    console.print(
        f"{counted(len(report.tasks), 'task')}, {counted(report.count('fault'), 'fault')}, "
        f"{report.count('broken')} not to be told, in {duration(report.seconds)}"
    )


def _table(report: DatasetReport) -> Table:
    from scheduler.dataset.report import COLUMNS

    table = plain_table("task")
    for column in COLUMNS:
        table.add_column(column, justify="center")
    table.add_column("s", justify="right")
    for task in report.tasks:
        signs = [_sign(task.mark_of(column)) for column in COLUMNS]
        table.add_row(task.name, *signs, f"{task.seconds:.1f}")
    return table


def _sign(mark: Mark) -> Text:
    sign, style = _SIGNS.get(mark.state, ("–", "dim"))
    return Text(sign, style=style)


@contextmanager
def _store(store_url: str | None, wanted: bool) -> Iterator[str | None]:
    """The store for attempts: the one named, else one for this check alone."""
    if not wanted or store_url is not None:
        yield store_url if wanted else None
        return
    with tempfile.TemporaryDirectory(prefix="apiary-check-") as folder:
        yield Path(folder).as_uri()
