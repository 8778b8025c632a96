"""Histories by their seeds; one that fails is made as small as it goes before it is told of."""

from __future__ import annotations

import random
from collections.abc import Sequence

from scheduler.errors import IllegalMoveError
from tests.scheduler.queue.histories import ACTIONS, History, Step

STEPS = 65


def random_history(seed: int, steps: int = STEPS) -> list[Step]:
    """The history of a seed."""
    numbers = random.Random(seed)
    return [[numbers.getrandbits(24) for _ in range(24)] for _ in range(steps)]


def failure(steps: Sequence[Step]) -> Exception | None:
    """What goes wrong in a history; None if nothing does."""
    try:
        History().run(steps)
    except (AssertionError, IllegalMoveError, LookupError, TypeError, ValueError) as error:
        return error
    return None


def smallest(steps: Sequence[Step]) -> list[Step]:
    """A part of a failing history that still fails, and from which no step can be left out."""
    kept = list(steps)
    size = len(kept)
    while size:
        place = 0
        while place < len(kept):
            fewer = kept[:place] + kept[place + size :]
            if failure(fewer) is not None:
                kept = fewer
            else:
                place += size
        size //= 2
    return kept


def told(steps: Sequence[Step]) -> str:
    """A history to be read."""
    return "\n".join(f"{ACTIONS[s[0] % len(ACTIONS)].__name__} {s[1:9]}" for s in steps)


def assert_no_failure(seed: int) -> None:
    """Runs the history of a seed; a failing one is made small first.

    Raises:
        AssertionError: it failed; the message has the smallest part of it.
    """
    steps = random_history(seed)
    if failure(steps) is None:
        return
    small = smallest(steps)
    error = failure(small)
    raise AssertionError(
        f"history {seed}, made smaller: {type(error).__name__}: {error}\n{told(small)}"
    ) from error
