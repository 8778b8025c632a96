"""``apiary bench``: what Apiary promises, measured on this machine."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from scheduler.cli.exits import Exit
from scheduler.cli.options import data_console, human_console, json_option
from scheduler.manifest.roots import find_manifests
from scheduler.settings import read_settings

if TYPE_CHECKING:
    from scheduler.bench.chaos import ChaosResult

SHORTEST_MINUTES = 0.25


@click.group("bench")
def command() -> None:
    """Measure what Apiary promises."""


@command.command("chaos")
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

    human = human_console()

    def say(text: str) -> None:
        human.print(text, markup=False, soft_wrap=True)

    with ended_by_sigterm(), world(find_manifests(Path()), read_settings()) as made:
        result = Chaos(made, seed, attempts, minutes, say).run()
    figures = chaos_figures(result)
    if as_json:
        for each in figures:
            click.echo(json.dumps(each, sort_keys=True))
    else:
        table = data_console()
        for each in figures:
            table.print(f"{each['name']:<28} {each['value']:>8} {each['unit']}", highlight=False)
    for line in complaints(result):
        say(f"✗ {line}")
    return Exit.DONE if result.is_clean else Exit.BUG


def chaos_figures(result: ChaosResult) -> list[dict[str, Any]]:
    """What was counted, one object a figure."""
    tally = result.tally
    must_be_zero = {
        "counted twice": len(tally.twice),
        "lost": len(tally.lost),
        "left over": result.left.count,
        "misjudged": len(tally.misjudged),
        "bugs": len(result.bugs),
    }
    values: list[tuple[str, float, str, float | None]] = [
        ("seed", result.seed, "", None),
        ("planned", len(tally.planned), "attempts", None),
        ("committed", len(tally.committed), "attempts", len(tally.planned)),
        *((name, value, "", 0) for name, value in must_be_zero.items()),
        ("commands", result.commands, "", None),
        ("duration", round(result.seconds), "s", None),
        ("faults", result.faults.total(), "", None),
        *((f"fault: {kind}", count, "", None) for kind, count in sorted(result.faults.items())),
        *((f"tries: {cause}", count, "", None) for cause, count in sorted(tally.causes.items())),
    ]
    return [
        {
            "name": name,
            "value": value,
            "unit": unit,
            "reference": reference,
            "ratio": value / reference if reference else None,
        }
        for name, value, unit, reference in values
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


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the bench as Ctrl-C does: with everything that it started."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
