"""Who is at work on a sweep, or why nobody is, read from its store. Blocks.

What a sweep's results do not tell: one that failed before its first attempt has none.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.claim_format import at_work, described, last_generation
from scheduler.journal_reading import driver_end
from scheduler.live_format import LiveSweep, read_live
from workers.storage.interface import Store


class Standing(NamedTuple):
    """A sweep with open attempts, apart from its results."""

    text: str
    is_over: bool
    """Whether nobody is at work on it, so that it waits for the operator."""


def standing_of(store: Store, sweep: str) -> Standing:
    """How a sweep that is not settled stands.

    Raises:
        StoreError: the store refused.
    """
    last = last_generation(store, sweep)
    if not last:
        return Standing("no driver has begun it", is_over=True)
    claim = at_work(store, sweep)
    if claim is not None:
        return Standing(f"{described(claim)} is at work, or died without a word", is_over=False)
    live = read_live(store, sweep)
    # An older driver's document says nothing of a newer one that ended before it had a view.
    shown = live if live is not None and live.generation == last and live.has_ended else None
    return Standing(_end(shown, driver_end(store, sweep, last)), is_over=True)


def _end(shown: LiveSweep | None, told: str) -> str:
    if shown is not None:
        word = "stopped by the operator" if shown.state == "interrupted" else shown.state
        return f"ended: {word}{f': {shown.reason}' if shown.reason else ''}"
    if told:
        return f"ended: {told}"
    return "its driver died without a word; apiary logs shows what it did last"
