"""``apiary reap``: what dead runs left behind, removed: in Docker, on the disk, as processes."""

from __future__ import annotations

import asyncio
import json
import platform
from pathlib import Path

import click

from scheduler import local_ray
from scheduler.cli.exits import Exit
from scheduler.cli.options import human_console, json_option
from workers.container.docker import DockerEngine
from workers.container.reap import Leftover, Reaped, leftovers, reap
from workers.container.scratch import abandoned, folders_with_owners, remove_abandoned


@click.command("reap")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--node",
    metavar="NAME",
    help="This machine's name in the labels, if it is not its host name.",
)
@json_option
def command(dry_run: bool, node: str | None, as_json: bool) -> int:
    """Remove what dead runs left on this machine.

    Only containers, volumes and networks with Apiary's labels go, and of these only what has
    expired, or belongs to a process of this machine that is gone. So do the folders of such
    processes, in the directory for temporary files and in the workspace of this working
    directory, and what still runs of their Ray.
    """
    folders = _reap_folders(dry_run)
    done = asyncio.run(_reap(node or platform.node(), dry_run))
    if as_json:
        click.echo(
            json.dumps(
                {
                    "removed": [_document(each) for each in done.removed],
                    "failed": [{**_document(each), "why": why} for each, why in done.failed],
                    "folders": [str(folder) for folder in folders],
                    "dry_run": dry_run,
                },
                sort_keys=True,
            )
        )
    else:
        verb = "would remove" if dry_run else "removed"
        for folder in folders:
            click.echo(f"{verb} folder {folder}: its owner is gone")
        for each in done.removed:
            click.echo(f"{verb} {each.kind[:-1]} {each.id[:20]}: {each.reason}")
        for each, why in done.failed:
            click.echo(f"could not remove {each.kind[:-1]} {each.id[:20]}: {why}")
        if not done.removed and not done.failed and not folders:
            human_console().print("nothing to remove")
    return Exit.INFRASTRUCTURE if done.failed else Exit.DONE


def _reap_folders(dry_run: bool) -> list[Path]:
    workspaces = folders_with_owners(Path(".apiary", local_ray.WORKSPACE).absolute())
    if dry_run:
        return [*local_ray.stale(), *abandoned(workspaces)]
    return [*local_ray.remove_stale(), *remove_abandoned(workspaces)]


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
