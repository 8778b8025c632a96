"""``apiary tasks show``: one task, what it sets up, and what proves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from scheduler.cli.exits import Exit
from scheduler.cli.options import data_console, json_option
from scheduler.cli.tasks.folders import open_dataset, path_option
from scheduler.cli.tasks.listing import document
from scheduler.dataset.lock import digest_fault, read_lock
from scheduler.dataset.proof import load_proof
from scheduler.manifest.faults import ManifestError
from workers.contract.task import Fixture, Task
from workers.contract.task_folder import digest_of


@click.command("show", short_help="Print one task.")
@click.argument("name")
@path_option
@json_option
def show_task(name: str, path: Path | None, as_json: bool) -> int:
    """Print one task: limits, what stands on the relay before it starts, its dimensions."""
    dataset = open_dataset(path)
    (folder,) = dataset.chosen([name])
    task = dataset.load(folder)
    lock = read_lock(dataset.folder)
    fault = digest_fault(lock, folder.name, task.digest, digest_of(dataset.kit, None))
    facts: dict[str, Any] = {
        **document(task),
        "folder": str(folder),
        "tags": list(task.config.metadata.tags),
        "pinned": None if lock is None else not fault,
        "agent_timeout_s": task.config.agent.timeout_sec,
        "verifier_timeout_s": task.config.verifier.timeout_sec,
        "environment": task.config.environment.model_dump(mode="json"),
        "fixture": None if task.fixture is None else task.fixture.model_dump(mode="json"),
        **_proved(folder),
    }
    if as_json:
        click.echo(json.dumps(facts, sort_keys=True))
    else:
        _show(task, facts)
    return Exit.DONE


def _proved(folder: Path) -> dict[str, Any]:
    """What a task's proof knows; empty where it has none."""
    try:
        proof = load_proof(folder)
    except ManifestError:
        return {"dimensions": [], "accepted": 0, "refused": 0}
    return {
        "dimensions": sorted(proof.dimensions),
        "accepted": len(proof.accepted),
        "refused": len(proof.refused),
    }


def _show(task: Task, facts: dict[str, Any]) -> None:
    console = data_console()
    environment = task.config.environment
    pinned = {None: "not pinned", True: "pinned", False: "not as pinned"}[facts["pinned"]]
    rows = {
        "layer": f"{task.layer}, k = {facts['attempts']}, {facts['difficulty'] or 'not rated'}",
        "tags": ", ".join(facts["tags"]),
        "digest": f"{task.digest} ({pinned})",
        "folder": facts["folder"],
        "limits": f"agent {facts['agent_timeout_s']:g} s, tests {facts['verifier_timeout_s']:g} s, "
        f"{environment.cpus} CPU, {environment.memory_mb} MB, network {environment.network_mode}",
        "graded by": "evidence" if task.fixture else f"its container's state, freeze {task.freeze}",
        **_fixture_rows(task.fixture),
        "dimensions": ", ".join(facts["dimensions"]) or "unknown: it has no proof",
        "proof": f"{facts['accepted']} transcripts accepted, {facts['refused']} refused",
    }
    console.print(Text(task.name, style="bold"))
    console.print(task.config.task.description, soft_wrap=True, markup=False)
    for heading, value in rows.items():
        if value:
            line = Text(f"{heading:<11} ", style="dim")
            console.print(line.append(value, style="default"), soft_wrap=True)
    console.print(f"\n{task.instruction.strip()}", soft_wrap=True, markup=False)


def _fixture_rows(fixture: Fixture | None) -> dict[str, str]:
    """What stands on the relay before the agent starts."""
    if fixture is None:
        return {"fixture": "none: a Harbor task"}
    users = sum(entry.role == "user" for entry in fixture.entries)
    bots = len(fixture.entries) - users
    return {
        "user": fixture.user_display_name or "",
        "directory": f"{users} users, {bots} bots" if fixture.entries else "",
        "memories": ", ".join(seed.slug for seed in fixture.memories),
        "scripted": ", ".join(script.label for script in fixture.scripted_messages),
        "observed": ", ".join(fixture.observe_channel_names),
        "inputs": ", ".join(fixture.verifier_inputs),
    }
