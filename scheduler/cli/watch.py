"""``apiary watch``: a running sweep, or one of its trials, from any machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import click
from rich.console import Console, RenderableType

from scheduler.cli.exits import Exit
from scheduler.cli.names import LATEST, find_planned, find_sweep
from scheduler.cli.options import data_console, json_option, opened, store_option
from scheduler.watch.sweep_reader import Moment, SweepReader
from scheduler.watch.sweep_screen import sweep_lines, sweep_screen
from scheduler.watch.terminal import PAUSE_S, draw_until_left
from scheduler.watch.trial_reader import TrialMoment, TrialReader
from scheduler.watch.trial_screen import trial_lines, trial_screen

T = TypeVar("T")


@click.command("watch")
@click.argument("sweep", required=False, metavar="[SWEEP]")
@click.option(
    "--trial",
    metavar="ID",
    help="Follow one attempt's channel: its id, or the first digits of it.",
)
@click.option("--once", is_flag=True, help="Print how it stands now, and end.")
@store_option
@json_option
def command(
    sweep: str | None, trial: str | None, once: bool, store_url: str | None, as_json: bool
) -> int:
    """Watch a running sweep, or one of its trials.

    SWEEP is an id, a unique prefix of one, or `latest`, which is the default. `q` or Ctrl-C
    leaves, and the sweep goes on. With --json, one document a line as long as there is something
    new, until the sweep or the attempt has ended.
    """
    store = opened(store_url)
    console = data_console()
    # A dumb terminal can be written to and not be drawn on.
    once = once or not (as_json or (console.is_terminal and not console.is_dumb_terminal))
    if trial is not None:
        with TrialReader(store, find_planned(store, trial, sweep)) as trials:
            trials_view = _View(trials.look, trial_screen, trial_lines, _trial_line)
            trials_view.show(console, once=once, as_json=as_json)
    else:
        sweeps = SweepReader(store, find_sweep(store, sweep or LATEST))
        sweeps_view = _View(sweeps.look, sweep_screen, sweep_lines, _sweep_line)
        sweeps_view.show(console, once=once, as_json=as_json)
    return Exit.DONE


@dataclass(frozen=True)
class _View(Generic[T]):
    """What is watched, and the ways in which it can be shown."""

    look: Callable[[], T]
    screen: Callable[[T, int, int | None], RenderableType]
    lines: Callable[[T], Iterable[str]]
    line: Callable[[T], _JsonLine]

    def show(self, console: Console, *, once: bool, as_json: bool) -> None:
        if as_json:
            self._stream(once=once)
        elif once:
            console.print(self.screen(self.look(), console.width, None))
        else:
            seen = draw_until_left(console, self.look, self.screen)
            for line in () if seen is None else self.lines(seen):
                console.print(line, markup=False, soft_wrap=True)

    def _stream(self, *, once: bool) -> None:
        """One document a line, where it is another one than before."""
        before: object = None
        with suppress(KeyboardInterrupt):
            while True:
                line = self.line(self.look())
                if line.version != before:
                    before = line.version
                    sys.stdout.write(json.dumps(line.document, sort_keys=True) + "\n")
                    sys.stdout.flush()
                if once or line.is_last:
                    return
                time.sleep(PAUSE_S)


class _JsonLine(NamedTuple):
    document: dict[str, Any]
    version: object
    """Another one: there is something new."""
    is_last: bool


def _sweep_line(moment: Moment) -> _JsonLine:
    live = moment.live
    document = {
        **live.model_dump(mode="json", by_alias=True),
        "standing": moment.standing,
        "still_s": round(moment.still_s, 1),
        "fault": moment.fault,
    }
    version = (live.generation, live.number, moment.standing, moment.fault)
    return _JsonLine(document, version, moment.standing in ("ended", "results"))


def _trial_line(moment: TrialMoment) -> _JsonLine:
    live, running, record = moment.live, moment.running, moment.record
    document = {
        "sweep": moment.subject.sweep,
        "attempt": moment.subject.attempt,
        "standing": moment.standing,
        "fault": moment.fault,
        "live": live and live.model_dump(mode="json", by_alias=True),
        "running": running and running.model_dump(mode="json", by_alias=True),
        "record": record and record.model_dump(mode="json", by_alias=True),
    }
    version = (
        moment.standing,
        moment.fault,
        live and (live.try_, live.number),
        running and (running.try_, running.phase),
        record and record.try_,
    )
    is_over = moment.standing in ("ended", "waiting") and not moment.is_driven
    return _JsonLine(document, version, moment.is_final or is_over)
