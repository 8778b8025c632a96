"""``apiary plan``: what a sweep would run."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table

from scheduler.cli.detectable import detectable, detectable_lines
from scheduler.cli.estimating import TokenPair, estimate_document, estimate_lines, estimate_of
from scheduler.cli.exits import Exit
from scheduler.cli.growth import committed, growth_document, growth_lines, left_of
from scheduler.cli.options import data_console, human_console, json_option, store_option
from scheduler.cli.sweep_flags import SweepFlags, base_of, grown, planned, sweep_flags
from scheduler.estimate import Estimate, Tokens
from scheduler.growth import Growth
from scheduler.plan import Plan
from scheduler.relay_check import relay_line, with_relay_seen
from scheduler.report.names import counted, short_name
from scheduler.report.tables import plain_table, titled
from scheduler.settings import read_settings
from workers.contract.spec import CellSpec
from workers.storage import Store, open_store

CELLS_SHOWN = 100
"""Beyond, tasks are shown with how many conditions run them."""


@click.command("plan")
@sweep_flags
@click.option(
    "--estimate",
    "from_store",
    is_flag=True,
    help="Say what it may cost, from earlier attempts of the same cells in the store.",
)
@click.option(
    "--tokens-per-attempt",
    "tokens",
    type=TokenPair(),
    help="Say what it may cost if an attempt takes these tokens.",
)
@store_option
@json_option
def command(
    flags: SweepFlags,
    from_store: bool,
    tokens: Tokens | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Show what a sweep would run, without running it.

    Every file is read and checked as by `run`; a key that is not set is only a warning here.
    Neither Docker nor Ray nor the store is asked, but with --into the store is: what would be
    added to that sweep, what is kept, and what has changed; and with --estimate what the same
    cells cost before. A deployment's relay is asked whether it is ready for the sweep.
    """
    settings = read_settings()
    base = base_of(settings)
    if flags.into is None:
        plan = planned(flags, store_url, settings, base, to_run=False)
        plan = with_relay_seen(plan, settings.environment, key_needed=False)
        asked = open_store(plan.spec.store) if from_store else None
        show_plan(plan, as_json, estimate_of(plan, tokens, asked))
    else:
        growth, store = grown(flags, flags.into, store_url, settings, base, to_run=False)
        growth = growth.with_relay_seen(settings.environment, key_needed=False)
        left = left_of(growth.plan, committed(store, growth.plan.sweep))
        estimate = None
        if left.attempts:
            estimate = estimate_of(left, tokens, store if from_store else None)
        show_growth(growth, store, as_json, estimate)
    return Exit.DONE


def show_plan(plan: Plan, as_json: bool, estimate: Estimate | None = None) -> None:
    """Prints a plan on standard output."""
    if as_json:
        document = {**plan_document(plan), "cost": estimate_document(estimate)}
        click.echo(json.dumps(document, sort_keys=True))
        return
    _print_plan(plan)
    _print_estimate(plan, estimate)
    human_console().print("nothing was started; `apiary run` with the same words starts it")


def show_growth(
    growth: Growth, store: Store, as_json: bool, estimate: Estimate | None = None
) -> None:
    """Prints what a sweep would grow to on standard output."""
    plan = growth.plan
    done = committed(store, plan.sweep)
    if as_json:
        told = growth_document(plan.sweep, growth.difference, done)
        into = {**told, "sweep": plan.sweep, "lock": plan.number, "is_new": growth.is_new}
        document = {**plan_document(plan), "into": into, "cost": estimate_document(estimate)}
        click.echo(json.dumps(document, sort_keys=True))
        return
    _print_plan(plan)
    _print_estimate(plan, estimate)
    console = data_console()
    if growth.is_new:
        title = f"{plan.sweep} would grow to lock-{plan.number}.json:"
        console.print(title, markup=False, soft_wrap=True)
        for line in growth_lines(plan.sweep, growth.difference, done):
            console.print(f"  {line}", markup=False, soft_wrap=True)
    else:
        text = f"{plan.sweep}: nothing to add, lock-{plan.number}.json plans all of it already"
        console.print(text, markup=False, soft_wrap=True)
    human_console().print("nothing was written; `apiary run` with the same words does it")


def _print_plan(plan: Plan) -> None:
    for warning in plan.warnings:
        click.echo(f"! {warning}", err=True)
    console = data_console()
    shown = _cells(plan) if len(plan.cells) <= CELLS_SHOWN else _tasks(plan)
    console.print(titled(f"Plan of {plan.name}", shown))
    console.print(titled("Conditions", _conditions(plan)))
    conditions = len(plan.conditions) - len(plan.canaries)
    canaries = f", {plan.canary_attempts} of them canaries" if plan.canaries else ""
    console.print(
        f"{counted(len(plan.attempts), 'attempt')}{canaries}: {counted(len(plan.tasks), 'task')} × "
        f"{counted(conditions, 'condition')}, store {plan.spec.store}",
        markup=False,
        soft_wrap=True,
    )
    for line in detectable_lines(plan):
        console.print(line, markup=False, soft_wrap=True)
    if plan.deployment is not None:
        console.print(relay_line(plan.deployment, plan.relay_seen), markup=False, soft_wrap=True)
    if plan.spec.buzz is not None:
        told = ", ".join(f"{name} {each[:12]}" for name, each in plan.spec.buzz.digests.items())
        console.print(f"agent buzz: {told}", markup=False, soft_wrap=True)
    for name, endpoint in plan.spec.endpoints.items():
        where = endpoint.upstream or endpoint.provider
        key = f", key from ${endpoint.api_key_env}" if endpoint.api_key_env else ", no key"
        console.print(f"endpoint {name}: {where}{key}", markup=False, soft_wrap=True)


def _print_estimate(plan: Plan, estimate: Estimate | None) -> None:
    for line in [] if estimate is None else estimate_lines(plan, estimate):
        data_console().print(line, markup=False, soft_wrap=True)


def plan_document(plan: Plan) -> dict[str, Any]:
    """A plan for machines."""
    return {
        "name": plan.name,
        "store": plan.spec.store,
        "network": plan.spec.network,
        "agent": plan.spec.agent,
        "programs": {} if plan.spec.buzz is None else plan.spec.buzz.digests,
        "relay": plan.spec.relay
        if plan.spec.relay == "embedded"
        else plan.spec.relay.model_dump(mode="json"),
        "relay_seen": plan.relay_seen and plan.relay_seen.model_dump(mode="json"),
        "base_image": plan.spec.base_image,
        "seed": plan.spec.seed,
        "scoring": plan.scoring.model_dump(mode="json"),
        "limits": plan.spec.limits.model_dump(mode="json"),
        "endpoints": sorted(plan.spec.endpoints),
        "attempts": len(plan.attempts),
        "canary_attempts": plan.canary_attempts,
        "conditions": [
            {
                "condition": cells[0].condition.condition,
                "digest": cells[0].condition.digest,
                "varies": dict(plan.varies.get(cells[0].condition.digest, {})),
                "canary": cells[0].canary,
                "cells": len(cells),
                "attempts": sum(plan.counts[cell.cell] for cell in cells),
            }
            for cells in _by_condition(plan)
        ],
        "cells": [
            {
                "cell": cell.cell,
                "task": cell.task.name,
                "task_digest": cell.task.digest,
                "layer": cell.task.layer,
                "condition": cell.condition.condition,
                "condition_digest": cell.condition.digest,
                "canary": cell.canary,
                "attempts": plan.counts[cell.cell],
            }
            for cell in plan.cells
        ],
        "detectable": [
            {"conditions": [each.one, each.other], "tasks": each.tasks, "difference": each.value}
            for each in detectable(plan)
        ],
        "warnings": list(plan.warnings),
    }


def _by_condition(plan: Plan) -> list[list[CellSpec]]:
    """The cells of every condition."""
    found: dict[str, list[CellSpec]] = {name: [] for name in plan.conditions}
    for cell in plan.cells:
        found[cell.condition.condition].append(cell)
    return list(found.values())


def _conditions(plan: Plan) -> Table:
    table = plain_table()
    columns = ["condition", "digest", "cells", "attempts"]
    if plan.varies:
        columns.insert(1, "varies")
    for heading in columns:
        right = heading in ("cells", "attempts")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for cells in _by_condition(plan):
        condition = cells[0].condition
        digest = condition.digest
        varies = plan.varies.get(digest, {})
        row = [condition.condition, digest[:12], str(len(cells))]
        row.append(str(sum(plan.counts[cell.cell] for cell in cells)))
        if plan.varies:
            row.insert(1, ", ".join(f"{axis}: {_value(axis, v)}" for axis, v in varies.items()))
        table.add_row(*row)
    return table


def _value(axis: str, label: str) -> str:
    """What of a label the axis does not say already."""
    return label.partition("=")[2] if axis.endswith(label.partition("=")[0]) else label


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


def _tasks(plan: Plan) -> Table:
    table = plain_table()
    for heading in ("task", "layer", "conditions", "attempts"):
        right = heading in ("conditions", "attempts")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    found: dict[str, list[CellSpec]] = {}
    for cell in plan.cells:
        found.setdefault(cell.task.name, []).append(cell)
    for name, cells in found.items():
        attempts = sum(plan.counts[cell.cell] for cell in cells)
        table.add_row(short_name(name), cells[0].task.layer, str(len(cells)), str(attempts))
    return table
