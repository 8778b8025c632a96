"""``apiary doctor``: whether this machine can run trials."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path

import click
from rich.text import Text

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import data_console, json_option, store_option
from scheduler.doctor import Finding, examine
from scheduler.settings import read_settings
from workers.contract.base import FormatError
from workers.contract.relay import Deployment

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
@click.option(
    "--agent-bin-dir",
    "programs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder with the programs of --agent buzz, to be looked at.",
)
@click.option("--relay-url", metavar="URL", help="The relay of a Buzz deployment, to be looked at.")
@click.option(
    "--relay-owner-key-env",
    metavar="NAME",
    help="The variable with the secret key of that relay's owner.",
)
@click.option("--relay-gateway", metavar="HOST:PORT", help="Where to connect to it.")
@store_option
@json_option
def command(
    endpoint_files: tuple[Path, ...],
    programs: Path | None,
    relay_url: str | None,
    relay_owner_key_env: str | None,
    relay_gateway: str | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Check that this machine can run trials.

    Every line is fine (✓), worth knowing (!) or to be mended (✗), with what to do. The exit code
    is 5 if something is to be mended.
    """
    settings = read_settings()
    store = store_url or settings.store_url
    deployment = _deployment(relay_url, relay_owner_key_env, relay_gateway)
    findings = asyncio.run(examine(settings, store, endpoint_files, programs, deployment))
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in findings], sort_keys=True))
    else:
        _show(findings)
    broken = any(finding.state == "fail" for finding in findings)
    return Exit.INFRASTRUCTURE if broken else Exit.DONE


def _deployment(
    url: str | None, owner_key_env: str | None, gateway: str | None
) -> Deployment | None:
    if url is None and owner_key_env is None and gateway is None:
        return None
    if url is None or owner_key_env is None:
        raise UsageFault("--relay-url and --relay-owner-key-env go together")
    given = {"url": url, "owner_key_env": owner_key_env, "gateway": gateway}
    try:
        return Deployment.from_json(json.dumps(given), "--relay-url")
    except FormatError as error:
        raise UsageFault(str(error)) from error


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
