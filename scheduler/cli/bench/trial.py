"""``apiary bench trial``: Buzz-native trials, alone and side by side."""

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


@click.command("trial")
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=24,
    show_default=True,
    help="Of each sweep with several at once; a quarter of it, one after another.",
)
@click.option(
    "--n-concurrent",
    "-n",
    type=click.IntRange(min=2),
    default=8,
    show_default=True,
    help="Trials at once.",
)
@rounds_option
@starts_option
@seed_option
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw where the time goes, as SVG.",
)
@json_option
def trial(
    attempts: int,
    n_concurrent: int,
    rounds: int,
    starts: float | None,
    seed: int,
    picture: Path | None,
    as_json: bool,
) -> int:
    """Run Buzz-native trials of a model that answers at once, and take their time apart.

    Sweeps by `apiary run` with one trial at a time and with several, and as many turns of two
    bare loops of Docker calls, come by turns; compare the ratio. Trials a second are counted from
    the first lease to the last commit. Needs the manifests folder of the project in or above the
    working directory.
    """
    # Here because Docker takes a second to load.
    from scheduler.bench.buzz_trials import all_figures, measure_buzz_trials, measure_help
    from scheduler.bench.picture import draw_phases
    from scheduler.bench.timed_sweeps import timed_sweeps

    with (
        ended_by_sigterm(),
        timed_sweeps(find_manifests(Path()), read_settings(), seed) as sweeps,
    ):
        made = measure_buzz_trials(
            sweeps,
            attempts={1: max(1, attempts // 4), n_concurrent: attempts},
            rounds=rounds,
            starts_per_s=starts,
            say=say_progress,
        )
        figures = [*all_figures(made), measure_help(sweeps)]
    if picture is not None:
        picture.write_text(draw_phases({each.how: each.phases() for each in made}), "utf-8")
    show_figures(figures, as_json=as_json)
    return Exit.DONE
