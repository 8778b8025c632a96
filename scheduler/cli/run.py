"""``apiary run``: a sweep from its files to its report."""

from __future__ import annotations

import click

from scheduler.cli.exits import Exit
from scheduler.cli.options import (
    human_console,
    json_option,
    metrics_options,
    ray_option,
    store_option,
)
from scheduler.cli.plan import show_plan
from scheduler.cli.sweep_flags import SweepFlags, planned, sweep_flags
from scheduler.plan import BaseImage, Plan
from scheduler.report.names import counted
from scheduler.settings import read_settings


@click.command("run")
@sweep_flags
@click.option("--dry-run", is_flag=True, help="Only show what would run, like `apiary plan`.")
@ray_option
@metrics_options
@store_option
@json_option
def command(
    flags: SweepFlags,
    dry_run: bool,
    ray_address: str | None,
    metrics_port: int | None,
    metrics_address: str,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run a sweep until every attempt is settled.

    Give a sweep file, or --path with --manifest. Ctrl-C lets running trials finish and starts no
    new ones; a second Ctrl-C ends them. `apiary resume` goes on from there.
    """
    settings = read_settings()
    reference = settings.base_image
    base = None if reference is None else BaseImage(reference=reference, digest=None)
    plan = planned(flags, store_url, settings, base, to_run=not dry_run)
    if dry_run:
        show_plan(plan, as_json)
        return Exit.DONE
    if not as_json:
        announce(plan)
    # Here because Ray and Docker take a second to load, and a wrong file is told without them.
    from scheduler.cli.running import Running, start_sweep

    return start_sweep(
        plan, Running(flags.n_concurrent, ray_address, as_json, metrics_port, metrics_address)
    )


def announce(plan: Plan) -> None:
    """Says in a line or two what is about to happen."""
    human = human_console()
    for warning in plan.warnings:
        human.print(f"! {warning}", markup=False, soft_wrap=True)
    if plan.base_image is None:
        human.print(
            "! no base image was chosen: task images are built on what they name themselves"
        )
    human.print(
        f"sweep {plan.sweep}: {counted(len(plan.tasks), 'task')} × "
        f"{counted(len(plan.conditions), 'condition')}, "
        f"{counted(len(plan.attempts), 'attempt')}, store {plan.spec.store}",
        soft_wrap=True,
    )
