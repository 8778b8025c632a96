"""What follows an invalid try: again, give up, or wait for the operator. Pure.

``workers.contract.outcome.RULES`` says what a blame means; this says how often and how soon.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from workers.contract.outcome import RULES, Blame, Retry

FIRST_DELAY_S: dict[Blame, float] = {Blame.PROVIDER: 5.0, Blame.HARNESS: 1.0}
"""Back-off before the second try; it doubles with each further one. Others: none."""

MAX_DELAY_S = 60.0


class Spent(NamedTuple):
    """The invalid tries of one attempt so far; those that the operator ended are not spent."""

    tries: int = 0
    once: int = 0
    """Of them: tries whose blame allows one more whole try and no third."""

    def after(self, blame: Blame) -> Spent:
        """With one more invalid try of this blame."""
        match RULES[blame].retry:
            case Retry.WHOLE:
                return Spent(self.tries + 1, self.once)
            case Retry.ONCE:
                return Spent(self.tries + 1, self.once + 1)
            case Retry.ON_RESUME | Retry.NEVER:
                return self


UNSPENT = Spent()


def spent_by(blames: Iterable[Blame]) -> Spent:
    """The invalid tries among those that ended with these blames."""
    spent = UNSPENT
    for blame in blames:
        spent = spent.after(blame)
    return spent


class Next(enum.StrEnum):
    """What becomes of an attempt after an invalid try."""

    AGAIN = "again"
    GIVE_UP = "give_up"
    ON_RESUME = "on_resume"


def after_invalid(spent: Spent, blame: Blame, max_tries: int) -> Next:
    """What becomes of an attempt.

    Args:
        spent: its invalid tries, the last one included.
        blame: of the last one.
        max_tries: tries of one attempt, the first included (``limits.max_tries``).
    """
    if RULES[blame].retry is Retry.ON_RESUME:
        return Next.ON_RESUME
    return Next.AGAIN if may_try(spent, max_tries) else Next.GIVE_UP


def may_try(spent: Spent, max_tries: int) -> bool:
    """Whether an attempt with these invalid tries may be tried once more."""
    return spent.tries < max_tries and spent.once < 2


def delay_s(spent: Spent, blame: Blame) -> float:
    """Seconds before the next try; they hold no slot."""
    first = FIRST_DELAY_S.get(blame, 0.0)
    return min(MAX_DELAY_S, first * 2.0 ** max(0, spent.tries - 1))
