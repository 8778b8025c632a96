"""``apiary resume``: a sweep again, from its lock alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from scheduler.cli.names import find_sweep
from scheduler.cli.options import (
    MetricsOptions,
    budget_options,
    check_scaling,
    human_console,
    json_option,
    log_option,
    metrics_options,
    opened,
    ray_option,
    scale_option,
    store_option,
    sweep_argument,
)
from scheduler.cli.run import announce
from scheduler.lock import lock_key, read_locks, revised, write_next
from scheduler.lock_difference import difference
from scheduler.lock_plan import key_faults, plan_from_lock
from scheduler.manifest import ManifestError, load_endpoints
from scheduler.relay_check import with_relay_seen
from scheduler.retry import DEADLY_CAUSES, DeadRetry
from scheduler.settings import read_settings
from workers.contract.outcome import Cause
from workers.journal import LogFormat


@click.command("resume")
@sweep_argument
@click.option(
    "--endpoint-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Endpoint file in place of what the lock says.",
)
@click.option(
    "-n",
    "--n-concurrent",
    type=click.IntRange(min=1),
    help="Trials at once on each node; otherwise as the sweep was started.",
)
@click.option(
    "--retry-dead",
    is_flag=True,
    help="Give attempts whose tries are spent as many again.",
)
@click.option(
    "--retry-cause",
    "causes",
    multiple=True,
    metavar="CAUSE",
    type=click.Choice([cause.value for cause in DEADLY_CAUSES]),
    help="As --retry-dead, only for attempts whose last try ended for this cause; repeatable.",
)
@budget_options
@ray_option
@scale_option
@metrics_options
@log_option
@store_option
@json_option
def command(
    sweep: str,
    endpoint_config: Path | None,
    n_concurrent: int | None,
    retry_dead: bool,
    causes: tuple[str, ...],
    budget: Mapping[str, float],
    ray_address: str | None,
    max_nodes: int | None,
    metrics: MetricsOptions,
    log_format: LogFormat,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Go on with a sweep that was interrupted.

    SWEEP is an id, a unique prefix of one, or `latest`. Attempts with a result stay as they are;
    those that the operator or the sweep's budget stopped, or that were never tried, are run. A new
    budget, or an endpoint that has changed, is kept in the sweep's next lock. Attempts that are
    dead, their tries spent without a verdict, are run again only where --retry-dead or
    --retry-cause says so: their old tries stay on record and no longer count. Where nothing is
    open, only the report is written again, and no key is needed.
    """
    check_scaling(max_nodes, ray_address)
    settings = read_settings()
    store = opened(store_url, settings)
    lock = read_locks(store, find_sweep(store, sweep))[-1]
    endpoints = None if endpoint_config is None else load_endpoints(endpoint_config)
    plan = plan_from_lock(lock, endpoints=endpoints)
    wished_lock = revised(
        lock,
        budget=lock.budget.model_copy(update=budget),
        endpoints=None if endpoints is None else plan.spec.endpoints,
    )
    if wished_lock != lock:
        before, lock = lock, write_next(store, wished_lock, datetime.now(UTC))
        plan = plan_from_lock(lock, endpoints=endpoints)
        for line in difference([before], lock).settings:
            human_console().print(f"lock-{lock.number}: {line}", soft_wrap=True)
    place = lock_key(lock.sweep, lock.number)

    def keys_are_there() -> None:
        for told in with_relay_seen(
            plan, settings.environment, key_needed=ray_address is None
        ).warnings[len(plan.warnings) :]:
            human_console().print(f"! {told}", markup=False, soft_wrap=True)
        faults = key_faults(place, plan.spec.endpoints, settings.environment)
        if faults and ray_address is None:
            raise ManifestError(faults)
        for fault in faults:
            # A cluster's nodes have keys of their own, and say so if they have not.
            human_console().print(f"! {fault}", markup=False, soft_wrap=True)

    if not as_json:
        announce(plan)
    # Here because Ray and Docker take a second to load.
    from scheduler.cli.running import Running, run_to_report

    slots = n_concurrent or lock.profile.n_concurrent
    wished = retry_dead or bool(causes)
    retry = DeadRetry(frozenset(map(Cause, causes))) if wished else None
    return run_to_report(
        plan,
        store,
        Running(
            slots,
            ray_address,
            as_json,
            metrics,
            retry=retry,
            log_format=log_format,
            max_nodes=max_nodes,
        ),
        keys_are_there,
    )
