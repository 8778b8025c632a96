"""How figures are shown: a table for people, one JSON object a line for machines."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table

from scheduler.bench.figure import Figure
from scheduler.cli.options import data_console, human_console


def show_figures(figures: Sequence[Figure], *, as_json: bool) -> None:
    """Prints figures on standard output."""
    if as_json:
        for figure in figures:
            click.echo(figure.to_json())
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for name in ("value", "spread", "n", "reference", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("against")
    for figure in figures:
        table.add_row(
            figure.name,
            f"{_number(figure.value)} {figure.unit}".rstrip(),
            _spread(figure.low, figure.high),
            str(figure.n),
            _number(figure.reference),
            " ".join(
                filter(
                    None,
                    (_number(figure.ratio), _spread(figure.ratio_low, figure.ratio_high, "()")),
                )
            ),
            figure.against,
        )
    data_console().print(table)


def say_progress(text: str) -> None:
    """A line for people on standard error, while a bench runs."""
    human_console().print(text, soft_wrap=True)


def _number(value: float | None) -> str:
    """At least three digits that count, and none behind the point of a large number."""
    if value is None:
        return ""
    if value == int(value):
        return f"{value:,.0f}"
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"


def _spread(low: float | None, high: float | None, around: str = "") -> str:
    if low is None or high is None or low == high:
        return ""
    text = f"{_number(low)}–{_number(high)}"
    return f"{around[0]}{text}{around[1]}" if around else text
