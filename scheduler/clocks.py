"""Wall clocks of the driver, its nodes and its store, compared. Pure.

Leases run on the queue's clock here and on each node's monotonic clock there, and durations are
measured by monotonic clocks: a wrong wall clock ends no lease and stretches no phase. It stands
in times of day only, on records and in signatures, so it is told.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_SKEW_S = 5.0
"""A wall clock that is off by more is told of."""


@dataclass(frozen=True)
class Reading:
    """Another clock, as one question and its answer show it; seconds."""

    ahead_s: float
    """The other clock minus ours; halfway between question and answer, as far as one knows."""
    error_s: float
    """How far ``ahead_s`` may be wrong: one way may have been instant and the other not."""

    @property
    def skew_s(self) -> float | None:
        """``ahead_s`` to a tenth, if it is certainly too much; else None."""
        if abs(self.ahead_s) - self.error_s <= MAX_SKEW_S:
            return None
        return round(self.ahead_s, 1)


def read_clock(
    other_s: float, *, our_s: float, took_s: float, held_s: float = 0.0, step_s: float = 0.0
) -> Reading:
    """Compares a clock with ours.

    Args:
        other_s: what the other clock said when the answer was made, seconds since 1970.
        our_s: what ours says now that the answer is here.
        took_s: from question to answer, by our monotonic clock.
        held_s: how long the other side held the question, by its own monotonic clock.
        step_s: what the other clock is rounded down to.
    """
    way = max(0.0, took_s - held_s) / 2
    return Reading(other_s + step_s / 2 - (our_s - way), way + step_s / 2)


def skew_text(whose: str, skew_s: float) -> str:
    """A sentence for the operator."""
    side = "ahead of" if skew_s > 0 else "behind"
    return (
        f"{whose} is {abs(skew_s):.1f} s {side} the driver's: leases and durations do not depend "
        "on it, but times on records and signatures do; set the clocks by NTP"
    )
