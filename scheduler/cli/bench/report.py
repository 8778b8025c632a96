"""``apiary bench report``: from results to numbers and a page."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option
from scheduler.manifest.roots import find_manifests


@click.command("report")
@click.option(
    "--attempts",
    type=click.IntRange(min=50),
    default=10000,
    show_default=True,
    help="Of the sweep that is reported.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How often all of it is measured, by turns.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the attempts' ends.")
@json_option
def report(attempts: int, rounds: int, seed: int, as_json: bool) -> int:
    """Score a sweep of simulated results and write its page.

    The reference is reading the same files. Seconds are the CPU's. Needs the manifests folder of
    the project in or above the working directory.
    """
    # Here because the report's libraries take a second to load.
    from scheduler.bench.report import measure_report

    with ended_by_sigterm():
        figures = measure_report(find_manifests(Path()), attempts, rounds, seed, say_progress)
    show_figures(figures, as_json=as_json)
    return Exit.DONE
