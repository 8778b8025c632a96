"""``apiary show``: one attempt for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.names import find_attempt
from scheduler.cli.options import data_console, json_option, opened, store_option
from scheduler.report.attempt import AttemptFiles, read_attempt, read_evidence
from scheduler.report.names import place_of, short_name
from scheduler.report.transcript import Line, transcript, visible
from workers.contract.evidence import Evidence
from workers.contract.outcome import Phase
from workers.contract.result import TryRecord, try_prefix

_VERDICT_STYLES = {"pass": "bold green", "fail": "bold red", "invalid": "bold yellow"}


@click.command("show")
@click.argument("attempt")
@click.option("--sweep", help="Look in this sweep only; otherwise in all, the latest first.")
@click.option("--try", "try_", metavar="TRY", help="Another try than the one that counts.")
@store_option
@json_option
def command(
    attempt: str, sweep: str | None, try_: str | None, store_url: str | None, as_json: bool
) -> int:
    """Show one attempt: transcript, dimensions, times, files.

    ATTEMPT is its id or the first digits of it, as the report and the closing table print them.
    """
    store = opened(store_url)
    name = find_attempt(store, attempt, sweep)
    found = read_attempt(store, name.sweep, name.attempt)
    try:
        chosen = found.chosen(try_)
    except KeyError as error:
        tries = ", ".join(found.tries)
        raise UsageFault(f"there is no try {try_!r} of {found.attempt}; it has {tries}") from error
    evidence = None if chosen is None else read_evidence(store, found, chosen)
    if as_json:
        click.echo(json.dumps(_document(found, chosen, evidence), sort_keys=True))
    else:
        _show(data_console(), found, chosen, evidence, store.url)
    return Exit.DONE


def _document(
    found: AttemptFiles, chosen: str | None, evidence: Evidence | None
) -> dict[str, object]:
    return {
        "sweep": found.sweep,
        "attempt": found.attempt,
        "try": chosen,
        "result": _dumped(found.result),
        "tries": {name: _dumped(record) for name, record in found.tries.items()},
        "files": found.files,
        "evidence": None if evidence is None else evidence.model_dump(mode="json"),
    }


def _dumped(record: TryRecord | None) -> object:
    return None if record is None else record.model_dump(mode="json", by_alias=True)


def _show(
    console: Console,
    found: AttemptFiles,
    chosen: str | None,
    evidence: Evidence | None,
    store_url: str,
) -> None:
    record = None if chosen is None else found.tries[chosen]
    for line in _heading(found, chosen, record):
        console.print(line, soft_wrap=True)
    _show_transcript(console, evidence)
    if record is not None:
        _show_dimensions(console, record)
        _show_times(console, record)
    _show_tries(console, found, chosen)
    if chosen is not None:
        _show_files(console, found, chosen, store_url)


def _heading(found: AttemptFiles, chosen: str | None, record: TryRecord | None) -> Iterator[Text]:
    if record is None:
        yield Text(f"attempt {found.attempt} of {found.sweep}: no try has ended yet")
        return
    head = Text(f"{short_name(record.task)} × {record.condition} #{record.index}  ", style="bold")
    head.append(record.verdict.value, style=_VERDICT_STYLES[record.verdict.value])
    if record.verdict.value != "pass":
        head.append(
            f"  {record.blame.value}: {record.cause.value}, decided in {record.phase.value}"
        )
    yield head
    if record.detail:
        yield Text(visible(record.detail))
    counts = (
        "counts" if found.result is not None and found.result.try_ == chosen else "does not count"
    )
    yield Text(
        f"attempt {found.attempt} of {found.sweep}\n"
        f"try {chosen} ({counts}) on {record.node}, {record.started_at} to {record.ended_at}",
        style="dim",
    )
    usage = record.usage
    if usage.calls:
        at_least = "≥ " if usage.unknown_cost_calls else ""
        yield Text(
            f"{usage.calls} model calls ({usage.failed_calls} failed), {usage.input_tokens} tokens "
            f"in ({usage.cached_input_tokens} cached), {usage.output_tokens} out "
            f"({usage.reasoning_tokens} reasoning), {at_least}${usage.cost_usd:.4f} "
            f"({at_least}${usage.uncached_cost_usd:.4f} without the cache)",
            style="dim",
        )
    for difference in record.token_differences:
        yield Text(visible(difference.told()), style="yellow")
    if record.graded_live:
        living = "; ".join(record.survivors)
        yield Text(f"graded while it still ran: {visible(living)}", style="yellow")
    if record.traceback:
        yield Text(visible(record.traceback), style="yellow")


def _show_transcript(console: Console, evidence: Evidence | None) -> None:
    _rule(console, "transcript")
    if evidence is None:
        console.print(Text("no evidence was taken", style="dim"))
        return
    for line in transcript(evidence):
        console.print(Padding(_message(line), (0, 0, 1, 4 * line.depth)))
    if evidence.truncated:
        console.print(Text("the channel had more messages than were taken", style="yellow"))


def _message(line: Line) -> Text:
    text = Text()
    if line.depth:
        text.append("↳ ", style="dim")
    text.append(line.author, style="bold cyan" if line.role == "user" else "bold magenta")
    role = "" if line.role == line.author else f"{line.role}, "
    text.append(f"  {role}{line.time}", style="dim")
    if line.mentions:
        text.append("  notifies " + ", ".join(f"@{name}" for name in line.mentions), style="blue")
    if line.marks:
        text.append("  [" + ", ".join(line.marks) + "]", style="dim")
    text.append("\n" + line.text.rstrip())
    return text


def _show_dimensions(console: Console, record: TryRecord) -> None:
    if not record.dimensions and record.reward is None:
        return
    reward = "none" if record.reward is None else f"{record.reward:g}"
    _rule(console, f"dimensions, reward {reward}")
    for name, value in sorted(record.dimensions.items(), key=lambda item: item[1]):
        sign, style = ("✓", "green") if value >= 1 else ("✗", "red")
        console.print(Text(f"{sign} {visible(name)} {value:g}", style=style))


def _show_times(console: Console, record: TryRecord) -> None:
    if not record.phase_seconds:
        return
    total = sum(record.phase_seconds.values())
    _rule(console, f"time, {total:.2f} s")
    for phase in Phase:
        seconds = record.phase_seconds.get(phase.value)
        if seconds is not None:
            bar = "▇" * round(40 * seconds / total) if total else ""
            console.print(Text(f"{phase.value:<10}{seconds:>8.2f} s  ").append(bar, style="blue"))


def _show_tries(console: Console, found: AttemptFiles, chosen: str | None) -> None:
    if len(found.tries) < 2:
        return
    _rule(console, "tries")
    for name, record in found.tries.items():
        sign = "→" if name == chosen else " "
        told = "left no record" if record is None else f"{record.verdict}, {record.cause}"
        console.print(Text(f"{sign} {name}  {told}"))


def _show_files(console: Console, found: AttemptFiles, chosen: str, store_url: str) -> None:
    prefix = try_prefix(found.sweep, found.attempt, chosen)
    _rule(console, "files")
    console.print(Text(f"{place_of(store_url, prefix)}/", style="dim"), soft_wrap=True)
    for name in found.files.get(chosen, ()):
        console.print(Text(f"  {visible(name)}"), soft_wrap=True)


def _rule(console: Console, title: str) -> None:
    console.print(Text(f"\n── {title}", style="bold dim"))
