"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Callable
from typing import Any, TextIO, TypeVar, cast

import click
from rich.console import Console

from scheduler.settings import Settings, read_settings
from workers.storage import Store, open_store

F = TypeVar("F", bound=Callable[..., Any])

WIDTH = 120
"""Columns where there is no terminal and ``COLUMNS`` says nothing."""

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


def metrics_options(function: F) -> F:
    """``--metrics-port`` and ``--metrics-address``."""
    port = click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="Serve the sweep's metrics to Prometheus while it runs; 0 takes a free port.",
    )
    address = click.option(
        "--metrics-address",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="The interface that metrics are served on.",
    )
    return port(address(function))


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
    """A console as wide as its terminal; a file or a pipe has room for whole tables."""
    if stream.isatty():
        return Console(file=stream, highlight=False)
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(file=cast(TextIO, Unpadded(stream)), width=width, highlight=False)
