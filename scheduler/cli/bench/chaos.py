"""``apiary bench chaos``: a sweep that is hurt at random, and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scheduler.bench.figure import Figure
from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option
from scheduler.manifest.roots import find_manifests
from scheduler.settings import read_settings

if TYPE_CHECKING:
    from scheduler.bench.chaos import ChaosResult

SHORTEST_MINUTES = 0.25


@click.command("chaos")
@click.option(
    "--minutes",
    type=click.FloatRange(min=SHORTEST_MINUTES),
    default=10.0,
    show_default=True,
    help="How long faults come.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the faults.")
@click.option(
    "--attempts",
    type=click.IntRange(min=2),
    default=500,
    show_default=True,
    help="Of the sweep, about 2 s each.",
)
@json_option
def chaos(minutes: float, seed: int, attempts: int, as_json: bool) -> int:
    """Hurt a sweep at random, and count what became of it.

    Starts an S3 server and three Ray nodes on this machine, and a sweep of short attempts by a
    scripted model. Drivers, nodes, Ray's servers, the store and containers are killed, frozen and
    removed meanwhile. Then every attempt must have one result and nothing may be left; the exit
    code is 1 otherwise. What is open when the minutes are over goes on without faults. Needs the
    manifests folder of the project in or above the working directory.
    """
    # Here because Ray and Docker take a second to load.
    from scheduler.bench.chaos import Chaos
    from scheduler.bench.world import world

    with ended_by_sigterm(), world(find_manifests(Path()), read_settings()) as made:
        result = Chaos(made, seed, attempts, minutes, say_progress).run()
    show_figures(chaos_figures(result), as_json=as_json)
    for line in complaints(result):
        say_progress(f"✗ {line}")
    return Exit.DONE if result.is_clean else Exit.BUG


def chaos_figures(result: ChaosResult) -> list[Figure]:
    """What was counted."""
    tally = result.tally
    must_be_zero = {
        "counted twice": len(tally.twice),
        "lost": len(tally.lost),
        "left over": result.left.count,
        "misjudged": len(tally.misjudged),
        "bugs": len(result.bugs),
    }
    planned = len(tally.planned)
    return [
        Figure.one("seed", result.seed),
        Figure.one("planned", planned, "attempts"),
        Figure.one("committed", len(tally.committed), "attempts", planned, "planned"),
        *(Figure.one(name, value, "", 0, "promised") for name, value in must_be_zero.items()),
        Figure.one("commands", result.commands),
        Figure.one("duration", round(result.seconds), "s"),
        Figure.one("faults", result.faults.total()),
        *(Figure.one(f"fault: {kind}", count) for kind, count in sorted(result.faults.items())),
        *(Figure.one(f"tries: {cause}", count) for cause, count in sorted(tally.causes.items())),
    ]


def complaints(result: ChaosResult) -> list[str]:
    """What was promised and not kept, by its name."""
    tally = result.tally
    attempts = {
        "lost": tally.lost,
        "counted twice": tally.twice,
        "failed, though the model does everything right": tally.misjudged,
    }
    lines = [f"{what}: {', '.join(sorted(found))}" for what, found in attempts.items() if found]
    lines += [f"left over: {each}" for found in result.left.kinds().values() for each in found]
    lines += result.bugs
    if not result.settled:
        lines.append("the sweep was not settled when its time was over")
    return lines
