"""``apiary logs``: what happened in a sweep, as its driver and nodes tell it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import click
from rich.text import Text

from scheduler.claim_format import at_work, read_beat
from scheduler.claims import Watch
from scheduler.cli.exits import Exit
from scheduler.cli.names import check_attempt, find_sweep
from scheduler.cli.options import (
    data_console,
    human_console,
    json_option,
    opened,
    store_option,
    sweep_argument,
)
from scheduler.journal_reading import JournalReader, Wanted, following
from scheduler.report.names import place_of
from scheduler.report.transcript import visible
from workers.contract.journal import JournalLine
from workers.contract.result import try_prefix
from workers.journal import text_of
from workers.storage.interface import Store

PAUSE_S = 3.0
"""Between two looks for new segments, which come every ten seconds."""
_STYLES = {"warning": "yellow", "error": "bold red", "debug": "dim"}
_CLOCK = "the clock of "


@click.command("logs")
@sweep_argument
@click.option("--attempt", metavar="ID", help="Only of one attempt: its id or its first digits.")
@click.option("--node", metavar="NAME", help="Only of one node.")
@click.option("--follow", "-f", is_flag=True, help="Go on as long as a driver is at work.")
@store_option
@json_option
def command(
    sweep: str,
    attempt: str | None,
    node: str | None,
    follow: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Show what happened in a sweep, as driver and nodes told it.

    SWEEP is an id, a unique prefix of one, or `latest`. Lines of several machines stand in the
    order of their clocks. Of one attempt, the files with its agents' own logs are named as well.
    """
    if attempt is not None:
        check_attempt(attempt)
    store = opened(store_url)
    name = find_sweep(store, sweep)
    reader = JournalReader(store, name, Wanted(attempt or "", node or ""))
    lines = reader.lines() if not follow else _followed(store, name, reader)
    attempts: set[str] = set()
    any_line = False
    skews: set[str] = set()
    with suppress(KeyboardInterrupt):
        for line in lines:
            any_line = True
            if attempt is not None:
                attempts.add(line.attempt)
            if line.event == "note" and line.text.startswith(_CLOCK):
                skews.add(line.text)
            _print(line, as_json)
    if not any_line:
        asked = f" of node {node!r}" if node else ""
        asked += f" of attempt {attempt!r}" if attempt else ""
        _say(f"the logs of {name} have no line{asked}")
    if attempt is not None and len(attempts) > 1:
        several = ", ".join(sorted(each[:12] for each in attempts))
        _say(f"! {attempt!r} may be any of {several}: write more of it for one alone")
    for each in sorted(attempts):
        _name_logs(store, name, each, as_json)
    for text in sorted(skews):
        _say(f"! {text}: its lines stand where that clock puts them")
    if reader.unread:
        _say(f"! {reader.unread} lines are of another version's format")
    return Exit.DONE


def _followed(store: Store, sweep: str, reader: JournalReader) -> Iterator[JournalLine]:
    watches: dict[int, Watch] = {}

    def is_over() -> bool:
        claim = at_work(store, sweep)
        if claim is None:
            return True
        # One that died on another machine is known by its silence alone.
        watch = watches.setdefault(claim.generation, Watch(claim, time.monotonic()))
        return watch.is_over(read_beat(store, sweep, claim.generation), time.monotonic())

    return following(reader, is_over, lambda: time.sleep(PAUSE_S))


def _print(line: JournalLine, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{line.to_line()}\n")
        sys.stdout.flush()
    else:
        data_console().print(
            Text(visible(text_of(line)), style=_STYLES.get(line.level, "")), soft_wrap=True
        )


def _name_logs(store: Store, sweep: str, attempt: str, as_json: bool) -> None:
    """Says where an attempt's own logs are."""
    if as_json:
        return
    prefix = try_prefix(sweep, attempt, "")
    for key in store.keys(prefix):
        if "/logs/" in key.removeprefix(prefix):
            _say(f"log: {visible(place_of(store.url, key))}")


def _say(text: str) -> None:
    human_console().print(text, markup=False, soft_wrap=True)
