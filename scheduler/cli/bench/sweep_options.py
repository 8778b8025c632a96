"""Options of the benches that run sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def rounds_option(function: F) -> F:
    """``--rounds``."""
    return click.option(
        "--rounds",
        type=click.IntRange(min=1),
        default=3,
        show_default=True,
        help="How often all of it is measured, by turns.",
    )(function)


def starts_option(function: F) -> F:
    """``--starts-per-s``."""
    return click.option(
        "--starts-per-s",
        "starts",
        type=click.FloatRange(min=0, min_open=True),
        metavar="RATE",
        help="Containers that the node may start a second; without it any number.",
    )(function)


def seed_option(function: F) -> F:
    """``--seed``."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, help="Of the sweeps' scripted model."
    )(function)
