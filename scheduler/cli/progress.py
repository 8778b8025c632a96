"""How a running sweep shows itself: a live table, plain lines, or one JSON event a line."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from scheduler.report.names import counted, short_name
from scheduler.report.tables import plain_table, titled
from scheduler.report.transcript import visible
from scheduler.view import ConditionView, Observer, SweepView
from scheduler.watch.words import duration
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord

DRAINING = (
    "stopping: no new attempts; those that run will finish. Ctrl-C once more ends them now "
    "(they will be tried again on resume)"
)

LINE_PAUSE_S = 3.0
"""Plain lines come no faster than this."""


class Progress(Observer, Protocol):
    """An observer that also tells of what the command itself does."""

    def event(self, kind: str, **facts: Any) -> None:
        """Something that a machine reads: ``start``, ``end``."""
        ...


@contextmanager
def progress(console: Console, as_json: bool) -> Iterator[Progress]:
    """The kind of progress that fits where the output goes.

    Args:
        console: for people, on standard error.
        as_json: events on standard output instead.
    """
    if as_json:
        yield JsonProgress(sys.stdout)
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield LiveProgress(live)
    else:
        yield LineProgress(console)


class JsonProgress:
    """One event a line."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def event(self, kind: str, **facts: Any) -> None:
        """Writes one event."""
        self._stream.write(json.dumps({"event": kind, **facts}, sort_keys=True) + "\n")
        self._stream.flush()

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        facts = dataclasses.asdict(dataclasses.replace(view, standings={}))
        # A line a second shall not grow with the number of cells: each try has its own line.
        del facts["standings"]
        self.event("progress", **facts)

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        self.event(
            "try",
            attempt=record.attempt,
            **{"try": record.try_},
            task=record.task,
            condition=record.condition,
            index=record.index,
            verdict=record.verdict,
            blame=record.blame,
            cause=record.cause,
            phase=record.phase,
            reward=record.reward,
            seconds=round(sum(record.phase_seconds.values()), 3),
        )

    def note(self, text: str) -> None:
        """See ``Observer``."""
        self.event("note", text=text)


class LineProgress:
    """Plain lines for a log: on change, and no faster than every few seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._printed_at: float | None = None
        self._shown: tuple[ConditionView, ...] = ()
        self._stopping = False

    def event(self, kind: str, **facts: Any) -> None:
        """Nothing: for machines."""

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        if view.stopping and not self._stopping:
            self._stopping = True
            self.note(DRAINING)
        now = self._clock()
        soon = self._printed_at is not None and now - self._printed_at < LINE_PAUSE_S
        if view.conditions == self._shown or (soon and not _finished(view)):
            return
        self._printed_at, self._shown = now, view.conditions
        self._say(line_of(view))

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        if record.verdict is Verdict.INVALID:
            self._say(invalid_line(record))

    def note(self, text: str) -> None:
        """See ``Observer``."""
        self._say(f"· {text}")

    def _say(self, text: str) -> None:
        self._console.print(visible(text), markup=False, soft_wrap=True)


class LiveProgress:
    """A table that is drawn again in its place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._stopping = False

    def event(self, kind: str, **facts: Any) -> None:
        """Nothing: for machines."""

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        if view.stopping and not self._stopping:
            self._stopping = True
            self.note(DRAINING)
        self._live.update(live_table(view), refresh=True)

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        if record.verdict is Verdict.INVALID:
            self._say(invalid_line(record))

    def note(self, text: str) -> None:
        """See ``Observer``."""
        self._say(f"· {text}")

    def _say(self, text: str) -> None:
        self._live.console.print(visible(text), markup=False)


def live_table(view: SweepView) -> RenderableType:
    """A moment of a sweep as a table, with one line under it."""
    table = plain_table("condition")
    for heading in ("passed", "failed", "invalid", "running", "waiting"):
        table.add_column(heading, justify="right")
    for row in view.conditions:
        table.add_row(
            row.condition,
            Text(str(row.passed), style="green" if row.passed else "dim"),
            Text(str(row.failed), style="red" if row.failed else "dim"),
            _invalid_text(row),
            str(row.running),
            str(row.waiting),
        )
    return Group(
        titled(view.sweep, table), Text(pace(view), style="yellow" if view.stopping else "dim")
    )


def line_of(view: SweepView) -> str:
    """A moment of a sweep as one line."""
    parts = []
    for row in view.conditions:
        shown = [f"{row.passed} passed", f"{row.failed} failed"]
        shown += [f"{row.invalid} invalid"] if row.invalid else []
        shown += [f"{row.running} running"] if row.running else []
        shown += [f"{row.waiting} waiting"] if row.waiting else []
        parts.append(f"{row.condition}: {', '.join(shown)}")
    return f"{' | '.join(parts)} | {pace(view)}"


def pace(view: SweepView) -> str:
    """How far, how fast, how long."""
    counts = [row.passed + row.failed + row.invalid for row in view.conditions]
    everything = sum(counts) + sum(row.running + row.waiting for row in view.conditions)
    parts = [
        f"{sum(counts)}/{everything} settled in {duration(view.elapsed_s)}",
        f"{view.attempts_per_minute:.1f}/min",
    ]
    if not _finished(view):
        parts.append("ETA unknown yet" if view.eta_s is None else f"ETA {duration(view.eta_s)}")
    parts.append(counted(view.nodes, "node"))
    if view.stopping:
        parts.append("stopping")
    return ", ".join(parts)


def invalid_line(record: TryRecord) -> str:
    """What went wrong with a try that says nothing about the model."""
    detail = f": {record.detail}" if record.detail else ""
    return (
        f"! {short_name(record.task)} × {record.condition} #{record.index} try {record.try_}: "
        f"invalid, {record.blame}: {record.cause} in {record.phase}{detail} ({record.attempt[:12]})"
    )


def _invalid_text(row: ConditionView) -> Text:
    """The given-up attempts, and the invalid tries so far where there were more."""
    text = Text(str(row.invalid), style="yellow" if row.invalid else "dim")
    if row.invalid_tries > row.invalid:
        text.append(f" ({row.invalid_tries} tries)", style="dim")
    return text


def _finished(view: SweepView) -> bool:
    return all(row.waiting == 0 and row.running == 0 for row in view.conditions)
