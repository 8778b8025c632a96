"""``apiary run``: a sweep from its files to its report."""

from __future__ import annotations

import click

from scheduler.cli.exits import Exit
from scheduler.cli.growth import committed, growth_lines
from scheduler.cli.options import (
    MetricsOptions,
    check_scaling,
    human_console,
    json_option,
    log_option,
    metrics_options,
    ray_option,
    scale_option,
    store_option,
)
from scheduler.cli.plan import show_growth, show_plan
from scheduler.cli.sweep_flags import SweepFlags, base_of, grown, planned, sweep_flags
from scheduler.growth import Growth
from scheduler.plan import Plan
from scheduler.relay_check import relay_line, with_relay_seen
from scheduler.report.names import counted
from scheduler.settings import read_settings
from workers.journal import LogFormat
from workers.storage import Store


@click.command("run")
@sweep_flags
@click.option("--dry-run", is_flag=True, help="Only show what would run, like `apiary plan`.")
@click.option(
    "--lock-only",
    is_flag=True,
    help="Write the sweep's lock and start nothing; `apiary resume` runs it.",
)
@ray_option
@scale_option
@metrics_options
@log_option
@store_option
@json_option
def command(
    flags: SweepFlags,
    dry_run: bool,
    lock_only: bool,
    ray_address: str | None,
    max_nodes: int | None,
    metrics: MetricsOptions,
    log_format: LogFormat,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run a sweep until every attempt is settled.

    Give a sweep file, or --path with --manifest. Ctrl-C lets running trials finish and starts no
    new ones; a second Ctrl-C ends them. `apiary resume` goes on from there.

    With --into a sweep that is there grows to what is given: more attempts, more tasks, more
    conditions. What is done stays done; a task or condition that has changed begins anew beside
    the old one. Nothing may be taken away, and `apiary plan --into` shows all of it before. A
    driver that is at work gives way to this one; with --lock-only it first ends what it has.
    """
    check_scaling(max_nodes, ray_address)
    settings = read_settings()
    base = base_of(settings)
    growth: Growth | None = None
    store: Store | None = None
    # A cluster's nodes have keys of their own: there they are asked, here it is a warning.
    to_run = not (dry_run or lock_only) and ray_address is None
    if flags.into is None:
        plan = planned(flags, store_url, settings, base, to_run=to_run)
        plan = with_relay_seen(plan, settings.environment, key_needed=to_run)
    else:
        growth, store = grown(flags, flags.into, store_url, settings, base, to_run=to_run)
        growth = growth.with_relay_seen(settings.environment, key_needed=to_run)
        plan = growth.plan
    if dry_run:
        if growth is not None and store is not None:
            show_growth(growth, store, as_json)
        else:
            show_plan(plan, as_json)
        return Exit.DONE
    if not as_json:
        announce(plan)
        if growth is not None and store is not None:
            announce_growth(growth, store)
    # Here because Ray and Docker take a second to load, and a wrong file is told without them.
    from scheduler.cli.running import Running, grow_sweep, start_sweep

    how = Running(
        flags.n_concurrent,
        ray_address,
        as_json,
        metrics,
        log_format=log_format,
        max_nodes=max_nodes,
    )
    if growth is not None and store is not None:
        return grow_sweep(growth, store, how, lock_only=lock_only)
    return start_sweep(plan, how, lock_only=lock_only)


def announce(plan: Plan) -> None:
    """Says in a line or two what is about to happen."""
    human = human_console()
    for warning in plan.warnings:
        human.print(f"! {warning}", markup=False, soft_wrap=True)
    if plan.deployment is not None:
        human.print(relay_line(plan.deployment, plan.relay_seen), markup=False, soft_wrap=True)
    if plan.base_image is None:
        human.print(
            "! no base image was chosen (`apiary doctor`): task images are built on what they name "
            "themselves",
            soft_wrap=True,
        )
    conditions = len(plan.conditions) - len(plan.canaries)
    canaries = f", {plan.canary_attempts} of them canaries" if plan.canaries else ""
    human.print(
        f"sweep {plan.sweep}: {counted(len(plan.tasks), 'task')} × "
        f"{counted(conditions, 'condition')}, "
        f"{counted(len(plan.attempts), 'attempt')}{canaries}, store {plan.spec.store}",
        markup=False,
        soft_wrap=True,
    )


def announce_growth(growth: Growth, store: Store) -> None:
    """Says what a sweep grows by."""
    human = human_console()
    if not growth.is_new:
        text = f"nothing to add: lock-{growth.before.number}.json plans all of it already"
        human.print(text, markup=False, soft_wrap=True)
        return
    done = committed(store, growth.plan.sweep)
    for line in growth_lines(growth.plan.sweep, growth.difference, done):
        human.print(f"lock-{growth.plan.number}: {line}", markup=False, soft_wrap=True)
