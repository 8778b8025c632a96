"""Schedules and timetables with sensible defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from scheduler.series.cron import Cron
from scheduler.series.planner import Timetable
from scheduler.series.schedule_file import Schedule, load_schedule

SCHEDULE = """\
schema_version: 1
series: nightly
sweep: ../sweeps/small.yaml
cron: "30 2 * * *"
zone: Europe/Berlin
"""


def timetable(expression: str = "0 * * * *", zone: tzinfo = UTC, **changes: Any) -> Timetable:
    """The rules of a series."""
    values: dict[str, Any] = {
        "series": "s",
        "cron": Cron(expression, zone),
        "jitter": timedelta(),
        "overlap": "skip",
        "catch_up": "none",
        "within": timedelta(days=7),
        "grace": timedelta(minutes=10),
        "deadline": timedelta(days=1),
    }
    return Timetable(**{**values, **changes})


def write_schedule(root: Path, text: str = SCHEDULE, name: str = "nightly") -> Path:
    """A schedule file in a world of manifests."""
    path = root / "manifests" / "schedules" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def schedule(root: Path, more: str = "", **fields: str) -> Schedule:
    """A sound schedule; fields replace those of ``SCHEDULE``, ``more`` is appended."""
    lines = dict(line.split(": ", 1) for line in SCHEDULE.splitlines())
    lines.update(fields)
    text = "".join(f"{name}: {value}\n" for name, value in lines.items()) + more
    return load_schedule(write_schedule(root, text, lines["series"]))


def utc(*parts: int) -> datetime:
    """A moment."""
    year, month, day, *time = parts
    return datetime(year, month, day, *time, tzinfo=UTC)
