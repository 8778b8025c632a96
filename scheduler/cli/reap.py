"""``apiary reap``: what dead runs left behind, removed."""

from __future__ import annotations

import asyncio
import json
import platform

import click

from scheduler.cli.exits import Exit
from scheduler.cli.options import human_console, json_option
from workers.container.docker import DockerEngine
from workers.container.reap import Leftover, Reaped, leftovers, reap


@click.command("reap")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--node",
    metavar="NAME",
    help="This machine's name in the labels, if it is not its host name.",
)
@json_option
def command(dry_run: bool, node: str | None, as_json: bool) -> int:
    """Remove what dead runs left in Docker.

    Only containers, volumes and networks with Apiary's labels go, and of these only what has
    expired, or belongs to a process of this machine that is gone.
    """
    done = asyncio.run(_reap(node or platform.node(), dry_run))
    if as_json:
        click.echo(
            json.dumps(
                {
                    "removed": [_document(each) for each in done.removed],
                    "failed": [{**_document(each), "why": why} for each, why in done.failed],
                    "dry_run": dry_run,
                },
                sort_keys=True,
            )
        )
    else:
        for each in done.removed:
            verb = "would remove" if dry_run else "removed"
            click.echo(f"{verb} {each.kind[:-1]} {each.id[:20]}: {each.reason}")
        for each, why in done.failed:
            click.echo(f"could not remove {each.kind[:-1]} {each.id[:20]}: {why}")
        if not done.removed and not done.failed:
            human_console().print("nothing to remove")
    return Exit.INFRASTRUCTURE if done.failed else Exit.DONE


async def _reap(node: str, dry_run: bool) -> Reaped:
    engine = await DockerEngine.open(node)
    try:
        if dry_run:
            return Reaped(tuple(await leftovers(engine)), ())
        return await reap(engine)
    finally:
        await engine.close()


def _document(leftover: Leftover) -> dict[str, str]:
    return {"kind": leftover.kind, "id": leftover.id, "reason": leftover.reason}
