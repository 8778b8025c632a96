"""What is shown of a trial while it runs, and the wish to see it.

Both are written over and over and say nothing that counts: a reader judges by its own clock how
long a document's ``number`` or ``beat`` has stood still, so no two machines' clocks are compared.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.evidence import Evidence
from workers.contract.result import Usage

WATCHED_AT_MOST = 8
"""Trials that are followed at once."""


class WatchWish(Strict):
    """``watched/<attempt>.json``: somebody looks; renewed every few seconds."""

    schema_version: Literal[1] = 1
    watcher: str
    """Drawn at random."""
    beat: int
    """Grows with each renewal."""


class LiveAgent(Strict):
    """One agent of a running trial."""

    agent: str
    turns_started: int
    turns_ended: int
    tool_calls: int
    usage: Usage


class LiveCall(Strict):
    """A request to the gateway that has ended."""

    agent: str | None
    model: str | None
    result: str
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    finish: str | None
    """Why the model stopped, in the dialect's word."""


class LogEntry(Strict):
    """A line of an agent's log."""

    agent: str
    text: str


class LiveTrial(Strict):
    """``live/<attempt>.json``: a running trial about once a second, while somebody looks."""

    schema_version: Literal[1] = 1
    number: int
    """Grows with each document of the try."""
    sweep: str
    attempt: str
    index: int
    try_: str = Field(alias="try")
    condition: str
    task: str
    node: str
    phase: str
    elapsed_s: float
    """Since its relay and gateway stood ready."""
    agents: tuple[LiveAgent, ...]
    calls: tuple[LiveCall, ...]
    """The last ones."""
    log: tuple[LogEntry, ...]
    """The last lines of the agents' logs."""
    channel: Evidence
    """The channel so far; ``truncated`` where only its last messages are here. ``message_count``
    counts them all, and texts may be cut."""


def watched_prefix(sweep: str) -> str:
    """Below it are the wishes of those who look."""
    return f"sweeps/{sweep}/watched/"


def watched_key(sweep: str, attempt: str) -> str:
    """The wish to see one attempt."""
    return f"{watched_prefix(sweep)}{attempt}.json"


def live_trial_prefix(sweep: str) -> str:
    """Below it are the trials that are shown."""
    return f"sweeps/{sweep}/live/"


def live_trial_key(sweep: str, attempt: str) -> str:
    """One attempt's trial, as it is shown."""
    return f"{live_trial_prefix(sweep)}{attempt}.json"
