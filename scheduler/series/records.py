"""Formats of a series in the store, but for its trend; and their keys.

```
series/<name>/since.json                  when the series was first seen
series/<name>/runs/<due>/seen.json        the due time was seen in time, and must wait
series/<name>/runs/<due>/fate.json        created once: a run, skipped, or missed
series/<name>/runs/<due>/claim-<n>.json   created once: who drives the run, the n-th to do so
series/<name>/runs/<due>/beat-<n>.json    written over every few seconds by the n-th
series/<name>/runs/<due>/cancel.json      the run is to end, and why
series/<name>/runs/<due>/end.json         created once: what the run came to
series/<name>/<due>.json                  its line of the trend (``trend_format``)
```
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from typing import Literal

from workers.contract.base import Strict

STAMP = "%Y%m%dT%H%M%SZ"

Outcome = Literal[
    "pass",
    "baseline",
    "inconclusive",
    "regression",
    "outage",
    "budget",
    "deadline",
    "cancelled",
]
"""What a run came to. ``baseline``: there was nothing before it to hold it against; ``outage``:
Apiary, a machine or a provider failed so often that it says nothing about the agent."""


class Since(Strict):
    """``since.json``."""

    schema_version: Literal[1] = 1
    at: str
    """RFC 3339, UTC."""


class Seen(Strict):
    """``seen.json``."""

    schema_version: Literal[1] = 1
    at: str
    host: str


class Fate(Strict):
    """``fate.json``: what becomes of a due time."""

    schema_version: Literal[1] = 1
    what: Literal["run", "skipped", "missed"]
    due: str
    wall: str
    """The due time on its zone's clock, as it was then; ISO 8601 without offset."""
    zone: str
    at: str
    host: str


class RunClaim(Strict):
    """``claim-<n>.json``: a run is driven by whoever created it."""

    schema_version: Literal[1] = 1
    number: int
    host: str
    at: str
    process: str = ""
    """For those on the same machine (``scheduler.process``)."""


class RunBeat(Strict):
    """``beat-<n>.json``: a number that grows while the runner lives."""

    schema_version: Literal[1] = 1
    beat: int
    left: Literal["", "interrupted", "infrastructure"] = ""
    """Not empty: nobody works on the run any more, though it is not done. What the operator
    interrupted may be taken up at once, anything else after a pause."""
    at: str


class Cancel(Strict):
    """``cancel.json``."""

    schema_version: Literal[1] = 1
    why: Literal["deadline", "cancelled"]
    at: str
    host: str


class RunOver(Strict):
    """``end.json``."""

    schema_version: Literal[1] = 1
    outcome: Outcome
    reason: str = ""
    claims: int
    at: str
    notices: tuple[str, ...] = ()
    """How telling people went, a line for each way; empty: nobody was to be told."""


def stamp(due: datetime) -> str:
    """A due time as it stands in keys and in the sweep's id."""
    return f"{due.astimezone(UTC):{STAMP}}"


@functools.lru_cache(maxsize=8192)
def from_stamp(text: str) -> datetime:
    """The due time that a stamp says."""
    return datetime.strptime(text, STAMP).replace(tzinfo=UTC)


@functools.lru_cache(maxsize=8192)
def is_stamp(text: str) -> bool:
    """Whether a text is a due time as keys have it: one that a calendar knows."""
    if re.fullmatch(r"[0-9]{8}T[0-9]{6}Z", text) is None:
        return False
    try:
        from_stamp(text)
    except ValueError:
        return False
    return True


def written(moment: datetime) -> str:
    """RFC 3339, UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_time(text: str) -> datetime:
    """The moment that ``written`` wrote."""
    return datetime.fromisoformat(text)


def runs_prefix(series: str) -> str:
    """Of all that is about a series' due times."""
    return f"series/{series}/runs/"


def run_key(series: str, due: datetime, name: str) -> str:
    """A key of one due time."""
    return f"{runs_prefix(series)}{stamp(due)}/{name}"
