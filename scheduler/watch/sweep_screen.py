"""A sweep's moment as a screen of text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from scheduler.live_format import LiveCondition, LiveFailure, LiveSweep
from scheduler.report.names import counted, short_name
from scheduler.watch.layout import Column, Section, one_line, screen
from scheduler.watch.sweep_reader import Moment
from scheduler.watch.words import amount, duration, money

NARROW = 70
"""Columns below which headings are short and less is said."""
DIGITS = 8
"""Of an attempt's id."""


def sweep_screen(moment: Moment, width: int, height: int | None) -> RenderableType:
    """The whole screen."""
    live = moment.live
    narrow = width < NARROW
    sections = [
        _conditions(live, narrow),
        _failures(live, narrow),
        _nodes(live, narrow),
        _running(live, narrow),
        Section(
            (Column("notes", takes_rest=True),),
            tuple((Text(one_line(n)),) for n in reversed(live.notes)),
        ),
    ]
    return screen(list(_head(moment, width)), sections, _foot(moment), width, height)


def sweep_lines(moment: Moment) -> Iterator[str]:
    """The same in a few words, for what stays on the terminal when the screen is gone."""
    yield f"{moment.live.sweep}: {_state(moment)[0]}"
    yield _pace(moment)
    yield _spending(moment.live)


def _head(moment: Moment, width: int) -> Iterator[Text]:
    live = moment.live
    state, style = _state(moment)
    title = Text(one_line(live.sweep), style="bold")
    yield title
    yield Text(one_line(state), style=style)
    yield _bar(live, width)
    yield Text(_pace(moment))
    yield Text(_spending(live))
    waits = [f"{name} is down: what uses it waits" for name in live.parked_endpoints]
    waits += [f"{name} is throttled by its provider" for name in live.throttled_endpoints]
    if waits:
        yield Text(one_line("endpoints: " + "; ".join(waits)), style="yellow")
    if moment.fault:
        yield Text(one_line(f"! {moment.fault}"), style="yellow")


def _state(moment: Moment) -> tuple[str, str]:
    live = moment.live
    driver = f"driver {live.generation} on {one_line(live.host)}"
    match moment.standing:
        case "results":
            return "no driver has shown this sweep: its results in the store", "dim"
        case "silent":
            ago = f", nothing new for {duration(moment.still_s)}" if moment.still_s >= 1 else ""
            return (
                f"NOT RUNNING: {driver} is not at work{ago} (last word {live.time}); go on with: "
                "apiary resume",
                "bold yellow",
            )
        case "taken_up":
            return f"{one_line(moment.driver)} takes it up", "cyan"
        case "ended":
            reason = f": {one_line(live.reason)}" if live.reason else ""
            style = "bold green" if live.state == "settled" else "bold yellow"
            return f"ended, {live.state}{reason} ({driver}, {live.time})", style
        case "running":
            late = f", nothing new for {duration(moment.still_s)}" if moment.still_s > 8 else ""
            word = "stopping: no new attempts" if live.stopping else live.state
            return f"{word}, {driver}, {live.time}{late}", "yellow" if live.stopping else "green"


def _bar(live: LiveSweep, width: int) -> Text:
    total = sum(_all(each) for each in live.conditions)
    room = max(1, min(width, 120))
    text = Text()
    left = room
    parts = [
        (sum(each.passed for each in live.conditions), "█", "green"),
        (sum(each.failed for each in live.conditions), "▓", "red"),
        (sum(each.invalid for each in live.conditions), "▒", "yellow"),
        (sum(each.running for each in live.conditions), "░", "cyan"),
    ]
    for count, sign, style in parts:
        cells = min(left, max(1, round(room * count / total)) if count and total else 0)
        text.append(sign * cells, style=style)
        left -= cells
    text.append("·" * left, style="dim")
    return text


def _pace(moment: Moment) -> str:
    live = moment.live
    total = sum(_all(each) for each in live.conditions)
    settled = sum(each.passed + each.failed + each.invalid for each in live.conditions)
    share = f" ({100 * settled / total:.0f} %)" if total else ""
    parts = [f"{settled}/{total} settled{share}"]
    if moment.standing == "running":
        parts.append(f"{live.attempts_per_minute:.1f}/min")
        if settled < total:
            parts.append("ETA unknown" if live.eta_s is None else f"ETA {duration(live.eta_s)}")
    if live.elapsed_s:
        parts.append(f"after {duration(live.elapsed_s)}")
    return ", ".join(parts)


def _spending(live: LiveSweep) -> str:
    spent = live.spending
    parts = [f"{'' if spent.complete else '≥ '}{money(spent.cost_usd)} spent"]
    if live.budget_share is not None:
        parts.append(f"{100 * live.budget_share:.0f} % of the budget")
    if spent.calls:
        parts.append(
            f"{amount(spent.calls)} calls, {amount(spent.input_tokens)} tokens in, "
            f"{amount(spent.output_tokens)} out"
        )
    return ", ".join(parts)


def _conditions(live: LiveSweep, narrow: bool) -> Section:
    names = (
        ("pass", "fail", "inv", "run", "wait")
        if narrow
        else ("passed", "failed", "invalid", "running", "waiting")
    )
    rows = tuple(
        (
            Text(one_line(each.condition)),
            _count(each.passed, "green"),
            _count(each.failed, "red"),
            _count(each.invalid, "yellow"),
            _count(each.running, "cyan"),
            _count(each.waiting, ""),
        )
        for each in live.conditions
    )
    columns = (
        Column("condition", least=8, takes_rest=True),
        *(Column(name, right=True) for name in names),
    )
    return Section(columns, rows, "conditions more")


def _failures(live: LiveSweep, narrow: bool) -> Section:
    rows = []
    for each in live.failures:
        row = [
            Text(one_line(f"{each.blame}: {each.cause}"), style=_style(each)),
            _count(each.attempts, ""),
            _count(each.tries, ""),
        ]
        rows.append((*row, Text("")) if narrow else (*row, _newest(each)))
    columns = (
        Column("no pass", least=16, takes_rest=narrow),
        Column("attempts", right=True),
        Column("tries", right=True),
        Column("newest", least=12, takes_rest=True),
    )
    if narrow:
        return Section(columns[:3], tuple(row[:3] for row in rows), "causes more")
    return Section(columns, tuple(rows), "causes more")


def _newest(failure: LiveFailure) -> Text:
    if not failure.examples:
        return Text("")
    newest = failure.examples[0]
    text = Text(f"{one_line(newest.attempt[:DIGITS])} ", style="dim")
    text.append(one_line(f"{short_name(newest.task)} × {newest.condition}"))
    if newest.detail:
        text.append(f": {one_line(newest.detail)}", style="dim")
    return text


def _nodes(live: LiveSweep, narrow: bool) -> Section:
    rows = [
        (
            Text(one_line(each.node)),
            _count(each.running, "cyan"),
            Text(str(each.running + each.free_slots)),
            Text(
                one_line(f"takes nothing: {each.draining}") if each.draining else "takes leases",
                style="yellow" if each.draining else "dim",
            ),
        )
        for each in sorted(live.nodes, key=lambda node: not node.draining)
    ]
    if live.lost_nodes:
        lost = Text(f"{counted(live.lost_nodes, 'node')} lost", style="yellow")
        rows.append((lost, Text(""), Text(""), Text("")))
    columns = (
        Column("node", least=8),
        Column("run" if narrow else "running", right=True),
        Column("slots", right=True),
        Column("state", takes_rest=True),
    )
    return Section(columns, tuple(rows), "nodes more")


def _running(live: LiveSweep, narrow: bool) -> Section:
    rows = tuple(
        (
            Text(one_line(each.attempt[:DIGITS]), style="dim"),
            Text(one_line(f"{short_name(each.task)} × {each.condition} #{each.index}")),
            Text(one_line(each.phase)),
            Text("" if narrow else one_line(each.node), style="dim"),
        )
        for each in live.running
    )
    columns = (
        Column("trial", least=DIGITS),
        Column("", least=12, takes_rest=True),
        Column("phase"),
        Column(""),
    )
    return Section(columns, rows, "more")


def _foot(moment: Moment) -> Text:
    goes_on = "; the sweep goes on" if moment.standing == "running" else ""
    follow = "   apiary watch --trial ID follows one" if moment.live.running else ""
    return Text(f"q leaves{goes_on}{follow}", style="dim")


def _all(each: LiveCondition) -> int:
    return each.passed + each.failed + each.invalid + each.running + each.waiting


def _count(number: int, style: str) -> Text:
    return Text(str(number), style=style if number else "dim")


def _style(failure: LiveFailure) -> str:
    return {"model": "red", "unclassified": "bold magenta"}.get(failure.blame, "yellow")
