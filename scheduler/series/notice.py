"""What people are told of a run: five lines, and the same for machines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from scheduler.report.names import short_name
from scheduler.series.records import Outcome
from scheduler.series.schedule_file import Event
from scheduler.series.trend_format import LineTest, TrendRecord
from workers.contract.base import Strict

MARKS = {"pass": "✓", "baseline": "✓", "inconclusive": "?", "regression": "✗"}


class Moved(Strict):
    """A line that moved."""

    condition: str
    task: str
    """Empty: the mean over the workflow tasks."""
    event: Literal["fell", "recovered", "still"]
    recent: tuple[int, int]
    before: tuple[int, int]
    runs: int
    p: float | None


class Notice(Strict):
    """The body of a webhook, and a line of the file."""

    schema_version: Literal[1] = 1
    id: str
    """Series and due time: the same where a notice comes twice."""
    series: str
    due: str
    sweep: str
    events: tuple[Event, ...]
    outcome: Outcome | Literal["skipped", "missed"]
    exit_code: int
    text: str
    """At most five lines."""
    moved: tuple[Moved, ...]
    evidence: str
    """Where the run's report is."""


def events_of(record: TrendRecord) -> tuple[Event, ...]:
    """What a run gives people to know."""
    judged = record.judgement
    found: list[Event] = []
    if judged.events("fell"):
        found.append("regression")
    if judged.events("recovered"):
        found.append("recovered")
    match judged.outcome:
        case "pass" | "baseline":
            found.append("pass")
        case "inconclusive":
            found.append("inconclusive")
        case "outage" | "deadline" | "budget":
            found.append("outage")
        case "cancelled":
            found.append("not_run")
        case "regression":
            pass
    return tuple(found)


def notice_of(record: TrendRecord, wall: str, exit_code: int, evidence: str) -> Notice:
    """A run, for people and machines.

    Args:
        record: its line of the trend.
        wall: the due time on its zone's clock.
        exit_code: what a command that ran it ends with.
        evidence: where its report is.
    """
    judged = record.judgement
    moved = [*(_moved(each) for each in judged.tests if each.event or each.fallen_since)]
    return Notice(
        id=f"{record.series}/{record.due}",
        series=record.series,
        due=record.due,
        sweep=record.sweep,
        events=events_of(record),
        outcome=judged.outcome,
        exit_code=exit_code,
        text="\n".join(_lines(record, moved, wall, evidence)),
        moved=tuple(moved),
        evidence=evidence,
    )


def not_run_notice(
    series: str, sweep: str, due: str, wall: str, what: Literal["skipped", "missed"]
) -> Notice:
    """A due time that no run came of."""
    why = {
        "skipped": "another run of the series was still at work",
        "missed": "no scheduler was there in time, and it is not caught up",
    }[what]
    return Notice(
        id=f"{series}/{due}",
        series=series,
        due=due,
        sweep=sweep,
        events=("not_run",),
        outcome=what,
        exit_code=0,
        text=f"– {series}, due {wall}: {what}: {why}",
        moved=(),
        evidence="",
    )


def _lines(record: TrendRecord, moved: Sequence[Moved], wall: str, evidence: str) -> list[str]:
    judged = record.judgement
    mark = MARKS.get(judged.outcome, "!")
    lines = [f"{mark} {judged.outcome}: {record.series}, due {wall}"]
    told = [_text(each) for each in moved] or list(judged.reasons)
    lines += told[:2] if len(told) <= 2 else [told[0], f"{told[1]}; {len(told) - 2} more"]
    changed = [each.text for each in record.breaks] or list(judged.across[-2:])
    if changed:
        more = f"; {len(changed) - 2} more" if len(changed) > 2 else ""
        word = "changed since the run before" if record.breaks else "changed between the runs"
        lines.append(f"{word}: {'; '.join(changed[:2])}{more}")
    elif moved:
        lines.append("task, image, agent, condition, profile and version are the same as before")
    lines.append(f"evidence: {evidence}")
    return lines


def _moved(test: LineTest) -> Moved:
    return Moved(
        condition=test.condition,
        task=test.task,
        event=test.event or "still",
        recent=test.recent,
        before=test.before,
        runs=test.window,
        p=test.p,
    )


def _text(moved: Moved) -> str:
    name = short_name(moved.task) if moved.task else "workflow"
    words = {"fell": "fell to", "recovered": "recovered to", "still": "is still at"}
    (now, of), (was, before) = moved.recent, moved.before
    runs = "in 1 run" if moved.runs == 1 else f"in {moved.runs} runs"
    chance = "" if moved.p is None or moved.event == "recovered" else f", p = {moved.p:.1g}"
    return (
        f"{name} under {moved.condition} {words[moved.event]} {now}/{of} {runs}, "
        f"before {was}/{before}{chance}"
    )
