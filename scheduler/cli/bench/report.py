"""``apiary bench report``: from results to numbers and a page."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.bench.turn_options import turn_options
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option
from scheduler.manifest.roots import find_manifests


@click.command("report")
@turn_options(
    "attempts", 10_000, "the attempts' ends", least=50, what="Of the sweep that is reported"
)
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
