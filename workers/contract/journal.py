"""One line of a sweep's journal: the same for driver and nodes, in log files and in the store."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from workers.contract.base import Strict

DRIVER = "driver"
"""The source of what the driver says; nodes bear their names."""

Level = Literal["debug", "info", "warning", "error"]


class JournalLine(Strict):
    """Something that happened. What a line does not say is left out of its JSON."""

    time: str
    """RFC 3339, UTC, by the clock of the machine that wrote it."""
    level: Level = "info"
    source: str
    """``driver``, or a node's name."""
    event: str
    """A word for machines."""
    sweep: str
    generation: int = 0
    """Of the driver: its own, or the one that a node obeys."""
    node: str = ""
    """Which node it is about."""
    attempt: str = ""
    try_: str = Field(default="", alias="try")
    phase: str = ""
    text: str = ""

    def to_line(self) -> str:
        """One line of compact JSON, without its newline."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    @property
    def fields(self) -> dict[str, Any]:
        """What it says, by name as in JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def events_prefix(sweep: str) -> str:
    """Below it are the closed segments of a sweep's journal."""
    return f"sweeps/{sweep}/events/"


def segment_key(sweep: str, source: str, start: str, number: int) -> str:
    """One segment: ``<source>-<start>-<number>.jsonl``.

    ``start`` is when its writer began, and has no ``-``.
    """
    return f"{events_prefix(sweep)}{source}-{start}-{number:06d}.jsonl"
