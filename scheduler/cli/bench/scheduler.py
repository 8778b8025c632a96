"""``apiary bench scheduler``: what a driver costs, with simulated nodes."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option
from scheduler.manifest.roots import find_manifests
from scheduler.settings import read_settings


@click.command("scheduler")
@click.option(
    "--small",
    type=click.IntRange(min=50),
    default=10_000,
    show_default=True,
    help="Attempts of the smaller sweep.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=100),
    default=100_000,
    show_default=True,
    help="Of the larger sweep, and of those that are planned and resumed.",
)
@click.option(
    "--nodes", type=click.IntRange(min=1), default=50, show_default=True, help="Simulated nodes."
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How often both sweeps are run, by turns.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the attempts' ends.")
@json_option
def scheduler(small: int, attempts: int, nodes: int, rounds: int, seed: int, as_json: bool) -> int:
    """Run sweeps of two sizes by simulated nodes, resume one, and plan one.

    Driver, queue, store and journal are real, and trials are over at once; what nodes work is
    taken off. The reference is the queue alone. Resuming is measured with one attempt of a
    hundred open, over files with and without their index, and over an S3 server of this machine,
    whose listings are counted. Needs the manifests folder of the project in or above the working
    directory, no Docker and no Ray.
    """
    # Here because the driver's libraries take a second to load.
    from scheduler.bench.scheduler import SchedulerBench

    manifests, settings = find_manifests(Path()), read_settings()
    with (
        ended_by_sigterm(),
        SchedulerBench(manifests, settings, nodes=nodes, seed=seed, say=say_progress) as bench,
    ):
        figures = bench.figures(small, attempts, rounds)
    show_figures(figures, as_json=as_json)
    return Exit.DONE
