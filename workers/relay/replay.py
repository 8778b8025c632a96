"""A relay's state from the events that it once accepted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from workers.nostr.event import Event
from workers.relay import kinds
from workers.relay.answer import Answer
from workers.relay.state import RelayState

Refusal = tuple[Event, str]
"""An event that was not taken in again, and the reason."""

_ANY_CLOCK_S = 2**62


def replay(
    state: RelayState, submit: Callable[[Event], Answer], events: Iterable[Event]
) -> list[Refusal]:
    """Submits events in their order, as of their own times; gives those that were refused.

    What a relay signs itself follows from the rest and is made anew, under this relay's key.
    Every author counts as the owner's agent: nobody else could have published.
    """
    refused: list[Refusal] = []
    with _past(state) as turn_to:
        for event in events:
            if event.kind in kinds.RELAY_SIGNED:
                continue
            turn_to(event.created_at)
            if event.pubkey != state.owner:
                state.owners.setdefault(event.pubkey, state.owner)
            answer = submit(event)
            if not answer.accepted:
                refused.append((event, answer.message))
    return refused


@contextmanager
def _past(state: RelayState) -> Iterator[Callable[[int], None]]:
    """Lets a relay's clock stand where it is turned to, forwards only, and any event pass it."""
    clock, limits, moment = state.clock, state.limits, 0

    def turn_to(when: int) -> None:
        nonlocal moment
        moment = max(moment, when)

    state.clock = lambda: moment
    state.limits = dataclasses.replace(limits, event_tolerance_s=_ANY_CLOCK_S)
    try:
        yield turn_to
    finally:
        state.clock, state.limits = clock, limits
