"""``apiary export``: a sweep's results in another harness's format."""

from __future__ import annotations

import json
from pathlib import Path

import click

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.names import find_sweep
from scheduler.cli.options import human_console, json_option, opened, store_option, sweep_argument
from scheduler.export.harbor import ExportError, export_harbor
from scheduler.report.names import counted


@click.group("export")
def command() -> None:
    """Write a sweep's results in another harness's format."""


@command.command("harbor")
@sweep_argument
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@store_option
@json_option
def harbor(sweep: str, folder: Path, store_url: str | None, as_json: bool) -> int:
    """Write a sweep as a Harbor job, which Harbor's viewer shows.

    SWEEP is an id, a unique prefix of one, or `latest`. DIR is the job's own folder; give the
    folder above it to `harbor view`. An attempt becomes a trial by its result or its last try;
    canaries are left out. Agent logs, evidence, and why there is none are under `agent/buzz/`.
    """
    store = opened(store_url)
    name = find_sweep(store, sweep)
    try:
        done = export_harbor(store, name, folder)
    except ExportError as error:
        raise UsageFault(str(error)) from error
    if as_json:
        told = {"sweep": name, "folder": str(folder), **done.__dict__}
        click.echo(json.dumps(told, ensure_ascii=False))
        return Exit.DONE
    human = human_console()
    human.print(
        f"{folder}: {counted(done.trials, 'trial')}, {counted(done.files, 'file')}; look at it "
        f"with: harbor view {folder.resolve().parent}",
        markup=False,
        soft_wrap=True,
    )
    if done.missing:
        human.print(f"! {counted(done.missing, 'file')} of them are not in the store any more")
    return Exit.DONE
