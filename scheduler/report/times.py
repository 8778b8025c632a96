"""Where the time of a sweep went: by phase, and by node. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler.report.charts import WIDTH
from scheduler.report.results import SweepResults
from workers.contract.outcome import Phase
from workers.contract.result import TryRecord

LANE = 6
"""Height of one trial in the timeline."""

TIMELINE_TRIES = 4000
"""Tries drawn at most: the page stays small, and more would be dust."""


@dataclass(frozen=True)
class PhaseTime:
    """How long a phase took over all tries that came to it; seconds."""

    phase: str
    tries: int
    median: float
    ninetieth: float
    longest: float
    share: float
    """Of the time of all tries."""


@dataclass(frozen=True)
class Bar:
    """One try in the timeline."""

    x: float
    y: float
    width: float
    verdict: str
    title: str


@dataclass(frozen=True)
class NodeLane:
    """The tries of one node, side by side as they ran."""

    node: str
    bars: tuple[Bar, ...]
    height: float
    at_once: int
    """Most trials at the same time."""


@dataclass(frozen=True)
class Timeline:
    """When each try ran on which node."""

    lanes: tuple[NodeLane, ...]
    seconds: float
    """From the first start to the last end."""
    left_out: int
    """Tries that are not drawn."""


def phase_times(results: SweepResults) -> tuple[PhaseTime, ...]:
    """The times of each phase, in the order of the phases."""
    tries = list(_tries(results))
    total = math.fsum(sum(record.phase_seconds.values()) for record in tries)
    rows = []
    for phase in Phase:
        times = sorted(
            record.phase_seconds[phase.value]
            for record in tries
            if phase.value in record.phase_seconds
        )
        if times:
            rows.append(
                PhaseTime(
                    phase=phase.value,
                    tries=len(times),
                    median=statistics.median(times),
                    ninetieth=times[math.ceil(0.9 * len(times)) - 1],
                    longest=times[-1],
                    share=math.fsum(times) / total if total else 0.0,
                )
            )
    return tuple(rows)


def timeline(results: SweepResults) -> Timeline:
    """Every try as a bar in its node's lane, by the nodes' wall clocks."""
    tries = sorted(_tries(results), key=lambda record: record.started_at)
    left_out = max(0, len(tries) - TIMELINE_TRIES)
    tries = tries[: len(tries) - left_out]
    spans = [(_at(record.started_at), _at(record.ended_at), record) for record in tries]
    if not spans:
        return Timeline((), 0.0, 0)
    first, last = min(start for start, _, _ in spans), max(end for _, end, _ in spans)
    scale = WIDTH / max(last - first, 0.001)
    nodes: dict[str, list[tuple[float, float, TryRecord]]] = {}
    for span in spans:
        nodes.setdefault(span[2].node, []).append(span)
    lanes = tuple(_lane(node, nodes[node], first, scale) for node in sorted(nodes))
    return Timeline(lanes, last - first, left_out)


def _lane(
    node: str, spans: Sequence[tuple[float, float, TryRecord]], first: float, scale: float
) -> NodeLane:
    """The tries of a node, each in the highest row that is free when it starts."""
    free_at: list[float] = []
    bars = []
    for start, end, record in spans:
        row = next((place for place, free in enumerate(free_at) if free <= start), len(free_at))
        if row == len(free_at):
            free_at.append(end)
        else:
            free_at[row] = end
        bars.append(
            Bar(
                x=round((start - first) * scale, 1),
                y=row * LANE,
                width=round(max((end - start) * scale, 0.4), 1),
                verdict=record.verdict.value,
                title=f"{record.attempt[:8]} {record.try_}",
            )
        )
    return NodeLane(node, tuple(bars), len(free_at) * LANE, len(free_at))


def _tries(results: SweepResults) -> Iterator[TryRecord]:
    for cell in results.cells:
        for attempt in cell.attempts:
            yield from attempt.tries


def _at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
