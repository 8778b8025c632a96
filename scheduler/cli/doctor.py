"""``apiary doctor``: whether this machine can run trials."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path

import click
from rich.text import Text

from scheduler.cli.exits import Exit
from scheduler.cli.options import data_console, json_option, store_option
from scheduler.doctor import Finding, examine
from scheduler.settings import read_settings

_SIGNS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


@click.command("doctor")
@click.option(
    "--endpoint-config",
    "endpoint_files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Endpoint file whose key variables must be set; may be repeated.",
)
@store_option
@json_option
def command(endpoint_files: tuple[Path, ...], store_url: str | None, as_json: bool) -> int:
    """Check that this machine can run trials.

    Every line is fine (✓), worth knowing (!) or to be mended (✗), with what to do. The exit code
    is 5 if something is to be mended.
    """
    settings = read_settings()
    findings = asyncio.run(examine(settings, store_url or settings.store_url, endpoint_files))
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in findings], sort_keys=True))
    else:
        _show(findings)
    broken = any(finding.state == "fail" for finding in findings)
    return Exit.INFRASTRUCTURE if broken else Exit.DONE


def _show(findings: list[Finding]) -> None:
    console = data_console()
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        sign, style = _SIGNS[finding.state]
        line = Text(f"{sign} ", style=style)
        line.append(f"{finding.subject:<{width}}  ", style="bold")
        line.append(finding.found, style="default")
        console.print(line, soft_wrap=True)
        if finding.todo:
            console.print(Text(f"{'':<{width + 4}}→ {finding.todo}", style=style), soft_wrap=True)
