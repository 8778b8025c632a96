"""``apiary bench docker``: trials of a Harbor task against Docker's bare loop."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.bench.sweep_options import rounds_option, seed_option, starts_option
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option
from scheduler.manifest.roots import find_manifests
from scheduler.settings import read_settings


@click.command("docker")
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=48,
    show_default=True,
    help="Of each sweep, and turns of each loop.",
)
@click.option(
    "--n-concurrent",
    "-n",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="Trials at once.",
)
@rounds_option
@starts_option
@seed_option
@click.option("--peer", type=click.Choice(["harbor"]), help="Run the same by Harbor too.")
@click.option(
    "--peer-program",
    default="harbor",
    show_default=True,
    metavar="PROGRAM",
    help="The peer's command, by path or name.",
)
@json_option
def docker(
    attempts: int,
    n_concurrent: int,
    rounds: int,
    starts: float | None,
    seed: int,
    peer: str | None,
    peer_program: str,
    as_json: bool,
) -> int:
    """Run a Harbor task's own solution against a bare loop of Docker calls.

    The task's image has one line more than the base image, its solution and tests take no time.
    Sweeps by `apiary run`, and loops that create a container, start it, run two commands in it
    and remove it, as many at once, come by turns; compare the ratio. Trials a second are counted
    from the first lease to the last commit.
    """
    # Here because Docker takes a second to load.
    from scheduler.bench.harbor_trials import measure_harbor_trials
    from scheduler.bench.timed_sweeps import timed_sweeps

    with (
        ended_by_sigterm(),
        timed_sweeps(find_manifests(Path()), read_settings(), seed) as sweeps,
    ):
        figures = measure_harbor_trials(
            sweeps,
            attempts=attempts,
            parallel=n_concurrent,
            rounds=rounds,
            starts_per_s=starts,
            peer=peer_program if peer else None,
            say=say_progress,
        )
    show_figures(figures, as_json=as_json)
    return Exit.DONE
