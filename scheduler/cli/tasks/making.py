"""``apiary tasks new``: the folder of a new task, ready to be checked and changed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import human_console, json_option
from scheduler.cli.tasks.folders import DEFAULT
from scheduler.dataset.lock import digest_fault, make_lock, read_lock, write_lock
from scheduler.dataset.proof import PROOFS, proof_path
from scheduler.dataset.skeleton import NAME_RULE, is_name, write_skeleton
from scheduler.manifest.roots import KIT_NAME, find_manifests
from scheduler.manifest.task import load_task


@click.command("new", short_help="Write the folder of a new task.")
@click.argument("name")
@click.option(
    "--path",
    type=click.Path(path_type=Path),
    help="Folder of tasks that gets it; otherwise manifests/tasks.",
)
@click.option(
    "--layer",
    type=click.Choice(["regression", "workflow"]),
    default="regression",
    show_default=True,
    help="Its evaluation layer.",
)
@json_option
def new_task(name: str, path: Path | None, layer: str, as_json: bool) -> int:
    """Write a small task that passes `check`, to be changed into the one you mean.

    The folder gets a question, a fixture, a verifier with the usual dimensions and a README; its
    proof is written beside it. A lock that the data set has is told of it.
    """
    dataset = path or DEFAULT
    if not is_name(name) or name == PROOFS:
        raise UsageFault(f"{name!r} is no name for a task: {NAME_RULE}")
    folder = dataset / name
    for taken in (folder, proof_path(folder)):
        if taken.exists():
            raise UsageFault(f"{taken} is there already; nothing was written")
    kit = find_manifests(dataset) / KIT_NAME
    if not kit.is_dir():
        raise UsageFault(
            f"there is no {kit}: a task's digest covers the verifier kit, so run this where the "
            "folder manifests is"
        )
    written = write_skeleton(folder, layer)
    _pin(dataset, folder, kit)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), "files": [str(each) for each in written]}))
        return Exit.DONE
    for each in written:
        click.echo(str(each))
    human_console().print(
        f"change it into the task you mean, then: apiary tasks check {name} --path {dataset}\n"
        "the attempt `solver` passes while the question is one that the scripted model can read; "
        "where it is not, take scripted-solver out of `attempts` in the proof",
        markup=False,
        soft_wrap=True,
    )
    return Exit.DONE


def _pin(dataset: Path, folder: Path, kit: Path) -> None:
    """Adds the new task to a lock that is there; what it says of the others stays."""
    lock = read_lock(dataset)
    if lock is None:
        return
    digest = load_task(folder, kit).digest
    if digest_fault(lock, folder.name, digest, lock.verifier_kit):
        fresh = make_lock({**lock.tasks, folder.name: digest}, kit)
        write_lock(dataset, fresh.model_copy(update={"verifier_kit": lock.verifier_kit}))
