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
from workers.container.reap import Leftover, Reaped, Scope, leftovers, reap
from workers.container.scratch import abandoned, folders_with_owners, remove_abandoned
from workers.container.unused import DAYS


@click.command("reap")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--node",
    metavar="NAME",
    help="This machine's name in the labels, if it is not its host name.",
)
@click.option(
    "--images-older-than",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=DAYS,
    show_default=True,
    help="Task images and agent files that no sweep has used for so many days have expired.",
)
@click.option(
    "--workspace",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The workspace to look at, if it is not that of this working directory.",
)
@json_option
def command(
    dry_run: bool, node: str | None, days: float, workspace: Path | None, as_json: bool
) -> int:
    """Remove what dead runs left on this machine.

    Of containers, volumes and networks only those go that carry Apiary's own proof, and of these
    only what belongs to a process of this machine that is gone, or has expired and whose process
    cannot be looked at from here. Task images go once no sweep has used them for a week; images
    of others, and base images, never. So do the folders of processes that are gone, in the
    directory for temporary files and in one workspace, the agent's files there, and what still
    runs of a dead run's Ray.
    """
    folder = (workspace or Path(".apiary", local_ray.WORKSPACE)).absolute()
    folders = _reap_folders(folder, dry_run)
    scope = Scope(workspace=folder, unused_days=days)
    done = asyncio.run(_reap(node or platform.node(), scope, dry_run))
    if as_json:
        click.echo(
            json.dumps(
                {
                    "removed": [_document(each) for each in done.removed],
                    "failed": [{**_document(each), "why": why} for each, why in done.failed],
                    "folders": [str(folder) for folder in folders],
                    "workspace": str(folder),
                    "dry_run": dry_run,
                },
                sort_keys=True,
            )
        )
    else:
        verb = "would remove" if dry_run else "removed"
        for each_folder in folders:
            click.echo(f"{verb} folder {each_folder}: its owner is gone")
        for each in done.removed:
            click.echo(f"{verb} {each.kind[:-1]} {_shown(each)}: {each.reason}")
        for each, why in done.failed:
            click.echo(f"could not remove {each.kind[:-1]} {_shown(each)}: {why}")
        if not done.removed and not done.failed and not folders:
            human_console().print(f"nothing to remove; workspace: {folder}", soft_wrap=True)
    return Exit.INFRASTRUCTURE if done.failed else Exit.DONE


def _reap_folders(workspace: Path, dry_run: bool) -> list[Path]:
    workspaces = folders_with_owners(workspace)
    if dry_run:
        return [*local_ray.stale(), *abandoned(workspaces)]
    return [*local_ray.remove_stale(), *remove_abandoned(workspaces)]


async def _reap(node: str, scope: Scope, dry_run: bool) -> Reaped:
    engine = await DockerEngine.open(node)
    try:
        if dry_run:
            return Reaped(tuple(await leftovers(engine, scope)), ())
        return await reap(engine, scope)
    finally:
        await engine.close()


def _document(leftover: Leftover) -> dict[str, str]:
    return {"kind": leftover.kind, "id": leftover.id, "reason": leftover.reason}


def _shown(leftover: Leftover) -> str:
    return leftover.id if leftover.kind in ("images", "bundles") else leftover.id[:20]
