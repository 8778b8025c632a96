"""``apiary resume``: a sweep again, from its lock alone."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler.cli.names import find_sweep
from scheduler.cli.options import (
    json_option,
    metrics_options,
    opened,
    ray_option,
    store_option,
    sweep_argument,
)
from scheduler.cli.run import announce
from scheduler.lock import plan_from_lock, read_locks
from scheduler.manifest import load_endpoints
from scheduler.settings import read_settings


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
@ray_option
@metrics_options
@store_option
@json_option
def command(
    sweep: str,
    endpoint_config: Path | None,
    n_concurrent: int | None,
    ray_address: str | None,
    metrics_port: int | None,
    metrics_address: str,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Go on with a sweep that was interrupted.

    SWEEP is an id, a unique prefix of one, or `latest`. Attempts with a result stay as they are;
    those that the operator stopped, or that were never tried, are run. Where nothing is open, only
    the report is written again.
    """
    settings = read_settings()
    store = opened(store_url, settings)
    lock = read_locks(store, find_sweep(store, sweep))[-1]
    plan = plan_from_lock(
        lock,
        environment=settings.environment,
        endpoints=None if endpoint_config is None else load_endpoints(endpoint_config),
    )
    if not as_json:
        announce(plan)
    # Here because Ray and Docker take a second to load.
    from scheduler.cli.running import Running, run_to_report

    slots = n_concurrent or lock.profile.n_concurrent
    return run_to_report(
        plan, store, Running(slots, ray_address, as_json, metrics_port, metrics_address)
    )
