"""What follows an invalid try: again, give up, or wait for the operator. Pure.

``workers.contract.outcome.RULES`` says what a blame means; this says how often and how soon.

*What spends a try:* every invalid one, except what the operator stopped, and a probe of an
endpoint whose provider failed once more: else the attempts that are sent to look whether a
provider is back would be used up by its absence. Both can be told from the try's record, so
that a later driver counts as this one did.

*What makes spent tries count no more:* the operator's wish, kept in the store (``Revival``).
It names attempts, and holds for the tries of all drivers before the one that it was given to,
so that a try that turns up late neither kills an attempt again nor gives it one more.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

from workers.contract.base import Strict
from workers.contract.outcome import BLAME_OF, RULES, Blame, Cause, Retry, Verdict

FIRST_DELAY_S: dict[Blame, float] = {Blame.PROVIDER: 5.0, Blame.HARNESS: 1.0}
"""Back-off before the second try; it doubles with each further one. Others: none."""

MAX_DELAY_S = 60.0

DEADLY_CAUSES: tuple[Cause, ...] = tuple(
    cause
    for cause, blame in BLAME_OF.items()
    if RULES[blame].verdict is Verdict.INVALID and RULES[blame].retry is not Retry.ON_RESUME
)
"""What the last try of a dead attempt may have ended for."""


class Spent(NamedTuple):
    """The invalid tries of one attempt so far; those that the operator ended are not spent."""

    tries: int = 0
    once: int = 0
    """Of them: tries whose blame allows one more whole try and no third."""
    forgiven: int = 0
    """Earlier ones, spent before the operator asked for fresh tries."""

    def after(self, blame: Blame, *, probe: bool = False) -> Spent:
        """With one more invalid try of this blame."""
        if probe and blame is Blame.PROVIDER:
            return self
        match RULES[blame].retry:
            case Retry.WHOLE:
                return self._replace(tries=self.tries + 1)
            case Retry.ONCE:
                return self._replace(tries=self.tries + 1, once=self.once + 1)
            case Retry.ON_RESUME | Retry.NEVER:
                return self

    def fresh(self) -> Spent:
        """With all tries so far forgiven."""
        return Spent(forgiven=self.forgiven + self.tries)


UNSPENT = Spent()


class EndedTry(Protocol):
    """What is needed here of a try's record."""

    @property
    def blame(self) -> Blame:
        """Who caused its end."""
        ...

    @property
    def probe(self) -> bool:
        """Whether it was to see if an endpoint is back."""
        ...

    @property
    def epoch(self) -> tuple[int, int]:
        """Of its lease: the driver's generation first."""
        ...


def spent_by(tries: Iterable[EndedTry], fresh_from: int = 0) -> Spent:
    """The invalid tries among these, in the order of their epochs.

    Args:
        tries: of one attempt.
        fresh_from: the driver generation for which the operator asked for fresh tries last;
            those of earlier ones are forgiven.
    """
    spent = UNSPENT
    fresh = fresh_from == 0
    for each in tries:
        if not fresh and each.epoch[0] >= fresh_from:
            spent, fresh = spent.fresh(), True
        spent = spent.after(each.blame, probe=each.probe)
    return spent if fresh else spent.fresh()


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


class DeadRetry(NamedTuple):
    """The operator's wish that dead attempts get fresh tries."""

    causes: frozenset[Cause] = frozenset()
    """Only those whose last try ended for one of these; empty: all."""

    def means(self, spent: Spent, last: Cause, max_tries: int) -> bool:
        """Whether it means an attempt without a result.

        Args:
            spent: its tries.
            last: the cause of the last one.
            max_tries: of the sweep's limits.
        """
        dead = not may_try(spent, max_tries)
        return dead and (not self.causes or last in self.causes)


class Revival(Strict):
    """``sweeps/<sweep>/operators/<g>.json``: which dead attempts got fresh tries, and when.

    Created once by driver ``g``, after it has claimed its generation and before its first
    lease. Tries of the attempts named here count no more if an earlier driver leased them.
    """

    schema_version: Literal[1] = 1
    act: Literal["retry_dead"] = "retry_dead"
    sweep: str
    generation: int
    at: str
    """RFC 3339, UTC."""
    causes: tuple[Cause, ...]
    """As the operator limited it; empty: not at all."""
    attempts: tuple[str, ...]


def revival_prefix(sweep: str) -> str:
    """The key prefix of a sweep's revivals."""
    return f"sweeps/{sweep}/operators/"


def fresh_from(revivals: Iterable[Revival]) -> dict[str, int]:
    """Attempt to the driver generation for which it got fresh tries last."""
    found: dict[str, int] = {}
    for revival in revivals:
        for attempt in revival.attempts:
            found[attempt] = max(found.get(attempt, 0), revival.generation)
    return found
