"""Options of the benches that measure in turns within one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

ROUNDS = 5


def turn_options(
    count: str,
    default: int,
    seed_of: str,
    *,
    least: int = 1,
    what: str = "In each round, of each kind",
) -> Callable[[F], F]:
    """``--<count>``, ``--rounds`` and ``--seed``.

    Args:
        count: what is counted, in the plural.
        default: how many.
        seed_of: what the seed decides, after "of".
        least: the least that is worth measuring.
        what: how the number is meant.
    """
    options = (
        click.option(
            f"--{count}",
            type=click.IntRange(min=least),
            default=default,
            show_default=True,
            help=f"{what}.",
        ),
        click.option(
            "--rounds",
            type=click.IntRange(min=1),
            default=ROUNDS,
            show_default=True,
            help="How often all of it is measured, by turns.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, help=f"Of {seed_of}."),
    )

    def decorated(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated
