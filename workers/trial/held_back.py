"""How long an agent had nothing under way but requests that waited for a provider's turn. Pure.

After a refusal the gateway holds requests back, of this agent or of any other on the account: in
the agent's stead it does what a client does that is refused. This is the provider's back-off,
though every request that was held may have its answer in the end.

Time in which another request of the same agent was under way does not count: an agent that asks
much at once makes part of its wait itself, and has its answers meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workers.gateway import LedgerLine

Span = tuple[float, float]


def held_back_s(lines: Sequence[LedgerLine], start_s: float, end_s: float) -> float:
    """Seconds between start and end, both since the trial was opened."""
    held, under_way = [], []
    for line in lines:
        forwarded_s = line.started_s + line.waited_s
        held.append((forwarded_s - line.held_s, forwarded_s))
        if line.forwarded:
            under_way.append((forwarded_s, line.started_s + line.seconds))
    either = _length(_within(held + under_way, start_s, end_s))
    return either - _length(_within(under_way, start_s, end_s))


def _within(spans: Iterable[Span], start_s: float, end_s: float) -> list[Span]:
    cut = ((max(begin, start_s), min(end, end_s)) for begin, end in spans)
    return [(begin, end) for begin, end in cut if begin < end]


def _length(spans: Iterable[Span]) -> float:
    """Of all of them together; where they overlap it counts once."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
