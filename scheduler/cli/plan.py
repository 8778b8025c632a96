"""``apiary plan``: what a sweep would run."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table

from scheduler.cli.exits import Exit
from scheduler.cli.options import data_console, human_console, json_option, store_option
from scheduler.cli.sweep_flags import SweepFlags, planned, sweep_flags
from scheduler.plan import BaseImage, Plan
from scheduler.report.names import counted, short_name
from scheduler.report.tables import plain_table, titled
from scheduler.settings import read_settings


@click.command("plan")
@sweep_flags
@store_option
@json_option
def command(flags: SweepFlags, store_url: str | None, as_json: bool) -> int:
    """Show what a sweep would run, without running it.

    Every file is read and checked as by `run`; a key that is not set is only a warning here.
    Neither Docker nor Ray nor the store is asked.
    """
    settings = read_settings()
    reference = settings.base_image
    base = None if reference is None else BaseImage(reference=reference, digest=None)
    show_plan(planned(flags, store_url, settings, base, to_run=False), as_json)
    return Exit.DONE


def show_plan(plan: Plan, as_json: bool) -> None:
    """Prints a plan on standard output."""
    if as_json:
        click.echo(json.dumps(plan_document(plan), sort_keys=True))
        return
    for warning in plan.warnings:
        click.echo(f"! {warning}", err=True)
    console = data_console()
    console.print(titled(f"Plan of {plan.name}", _cells(plan)))
    console.print(
        f"{counted(len(plan.attempts), 'attempt')}: {counted(len(plan.tasks), 'task')} × "
        f"{counted(len(plan.conditions), 'condition')}, store {plan.spec.store}",
        soft_wrap=True,
    )
    for name, endpoint in plan.spec.endpoints.items():
        where = endpoint.base_url or endpoint.provider
        key = f", key from ${endpoint.api_key_env}" if endpoint.api_key_env else ", no key"
        console.print(f"endpoint {name}: {where}{key}", soft_wrap=True)
    human_console().print("nothing was started; `apiary run` with the same words starts it")


def plan_document(plan: Plan) -> dict[str, Any]:
    """A plan for machines."""
    return {
        "name": plan.name,
        "store": plan.spec.store,
        "network": plan.spec.network,
        "base_image": plan.spec.base_image,
        "seed": plan.spec.seed,
        "scoring": plan.scoring.model_dump(mode="json"),
        "limits": plan.spec.limits.model_dump(mode="json"),
        "endpoints": sorted(plan.spec.endpoints),
        "attempts": len(plan.attempts),
        "cells": [
            {
                "cell": cell.cell,
                "task": cell.task.name,
                "task_digest": cell.task.digest,
                "layer": cell.task.layer,
                "condition": cell.condition.condition,
                "condition_digest": cell.condition.digest,
                "attempts": plan.counts[cell.cell],
            }
            for cell in plan.cells
        ],
        "warnings": list(plan.warnings),
    }


def _cells(plan: Plan) -> Table:
    table = plain_table()
    for heading in ("task", "layer", "condition", "model", "k"):
        table.add_column(heading, justify="right" if heading == "k" else "left", overflow="fold")
    last = None
    for cell in plan.cells:
        same = cell.task.name == last
        last = cell.task.name
        table.add_row(
            "" if same else short_name(cell.task.name),
            "" if same else cell.task.layer,
            cell.condition.condition,
            ", ".join(cell.condition.endpoints),
            str(plan.counts[cell.cell]),
        )
    return table
