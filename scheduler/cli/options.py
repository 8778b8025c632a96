"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import functools
import io
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

import click
from rich.console import Console

from scheduler.manifest import BUDGET_FLAGS
from scheduler.settings import Settings, read_settings
from workers.journal import FORMATS
from workers.storage import Store, open_store

F = TypeVar("F", bound=Callable[..., Any])

WIDTH = 120
"""Columns where there is no terminal and ``COLUMNS`` says nothing."""

LINGER_S = 25.0
"""Prometheus' usual scrape interval and ten seconds more."""

_BLANKS_AT_END = re.compile(r" +$", re.MULTILINE)


def store_option(function: F) -> F:
    """``--store URL``."""
    return click.option(
        "--store",
        "store_url",
        metavar="URL",
        help="Where results live: file:///path or s3://bucket/prefix.",
    )(function)


def json_option(function: F) -> F:
    """``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON for machines on standard output."
    )(function)


def ray_option(function: F) -> F:
    """``--ray-address``."""
    return click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="A running Ray cluster; otherwise Ray is started on this machine.",
    )(function)


def scale_option(function: F) -> F:
    """``--max-nodes``; ``check_scaling`` must follow."""
    return click.option(
        "--max-nodes",
        type=click.IntRange(min=1),
        metavar="N",
        help="Ask the cluster's autoscaler for as many nodes as are needed, at most N, and give "
        "back what is spare.",
    )(function)


def check_scaling(max_nodes: int | None, ray_address: str | None) -> None:
    """Refuses ``--max-nodes`` where there is no cluster that could grow.

    Raises:
        click.UsageError: so.
    """
    if max_nodes is not None and ray_address is None:
        raise click.UsageError("--max-nodes needs --ray-address: a machine alone cannot grow")


def log_option(function: F) -> F:
    """``--log-format``."""
    return click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        default="json",
        show_default=True,
        envvar="APIARY_LOG_FORMAT",
        show_envvar=True,
        help="Of the log files that driver and nodes write.",
    )(function)


@dataclass(frozen=True)
class MetricsOptions:
    """Where Prometheus finds a sweep's metrics."""

    port: int | None = None
    """Null: they are not served, only kept beside the report."""
    address: str = "127.0.0.1"
    linger_s: float = LINGER_S
    """How long the last values stay served after the sweep's end."""
    targets: Path | None = None
    """A file for ``file_sd_config`` that names driver and nodes while they are there."""

    @property
    def of_nodes(self) -> str:
        """``address:port`` for a node of this machine; empty: it serves none either."""
        if self.port is None:
            return ""
        return f"[{self.address}]:0" if ":" in self.address else f"{self.address}:0"


def metrics_options(function: F) -> F:
    """``--metrics-port`` and what belongs to it, given to the command as ``metrics``."""

    @functools.wraps(function)
    def with_metrics(
        *values: Any,
        metrics_port: int | None,
        metrics_address: str,
        metrics_linger: float,
        metrics_targets: Path | None,
        **named: Any,
    ) -> Any:
        options = MetricsOptions(metrics_port, metrics_address, metrics_linger, metrics_targets)
        return function(*values, metrics=options, **named)

    options = (
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Serve the sweep's metrics to Prometheus while it runs; 0 takes a free port, and "
            "so does one that is taken.",
        ),
        click.option(
            "--metrics-address",
            default="127.0.0.1",
            show_default=True,
            metavar="ADDRESS",
            help="The interface that metrics are served on.",
        ),
        click.option(
            "--metrics-linger",
            type=click.FloatRange(0, 3600),
            default=LINGER_S,
            show_default=True,
            metavar="SECONDS",
            help="Serve the last values so much longer, so that the last scrape sees them.",
        ),
        click.option(
            "--metrics-targets",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Keep the addresses of driver and nodes in this file for Prometheus.",
        ),
    )
    wrapped: Any = with_metrics
    for option in reversed(options):
        wrapped = option(wrapped)
    return cast(F, wrapped)


def budget_options(function: F) -> F:
    """``--budget-usd`` and its like, given to the command as ``budget``.

    By the names of ``SweepBudget``, and only what was said.
    """

    @functools.wraps(function)
    def with_budget(*values: Any, **named: Any) -> Any:
        said = {name: named.pop(name) for name in BUDGET_FLAGS}
        budget = {name: limit for name, limit in said.items() if limit is not None}
        return function(*values, budget=budget, **named)

    tokens = click.IntRange(min=1)
    kinds: dict[str, tuple[click.ParamType[Any], str]] = {
        "max_cost_usd": (
            click.FloatRange(min=0, min_open=True),
            "What the whole sweep may cost in dollars, what is spent already included.",
        ),
        "max_calls": (tokens, "Likewise, its model calls."),
        "max_input_tokens": (tokens, "Likewise, its tokens in."),
        "max_output_tokens": (tokens, "Likewise, its tokens out."),
    }
    wrapped: Any = with_budget
    for name, flag in reversed(BUDGET_FLAGS.items()):
        kind, told = kinds[name]
        wrapped = click.option(flag, name, type=kind, help=told)(wrapped)
    return cast(F, wrapped)


def sweep_argument(function: F) -> F:
    """A sweep by id, unique prefix, or ``latest``, which is the default."""
    return click.argument("sweep", default="latest", metavar="[SWEEP]")(function)


def opened(store_url: str | None, settings: Settings | None = None) -> Store:
    """The store that a command works on."""
    return open_store(store_url or (settings or read_settings()).store_url)


def data_console() -> Console:
    """Standard output, for tables that are a command's answer."""
    return _console(sys.stdout)


def human_console() -> Console:
    """Standard error, for progress and words."""
    return _console(sys.stderr)


class Unpadded(io.TextIOBase):
    """A stream whose lines end without the blanks that fill up a table's last column."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute only in the stub
        """The stream's own."""
        return self._stream.encoding

    def write(self, text: str) -> int:
        """Writes whole lines, as a console does."""
        self._stream.write(_BLANKS_AT_END.sub("", text))
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._stream.flush()


def _console(stream: TextIO) -> Console:
    """A console as wide as its terminal; a file or a pipe has room for whole tables.

    Names come from files: one with brackets is text, and no style. What the terminal's encoding
    does not know, as ✓ in Latin-1, is shown as a question mark.
    """
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="replace")
    if stream.isatty():
        return Console(file=stream, highlight=False, markup=False)
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(file=cast(TextIO, Unpadded(stream)), width=width, highlight=False, markup=False)
