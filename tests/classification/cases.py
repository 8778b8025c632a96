"""The cases of the classification: a name, how it is provoked, and how it must end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from scheduler.queue import WorkQueue
from workers.contract.outcome import RULES, Blame, Cause, Phase, Retry, Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import Limits

Provoke = Callable[[Path], Awaitable[TryRecord]]
"""Provokes the case in an empty folder and gives the record of its first try."""

MOST_TRIES = 4


class End(NamedTuple):
    """What a record says of its try."""

    verdict: Verdict
    blame: Blame
    cause: Cause
    phase: Phase
    again: Retry

    @classmethod
    def parse(cls, text: str) -> End:
        """Reads ``verdict blame cause phase again``."""
        verdict, blame, cause, phase, again = text.split()
        return cls(Verdict(verdict), Blame(blame), Cause(cause), Phase(phase), Retry(again))


@dataclass(frozen=True)
class Case:
    """One way in which a try may end."""

    group: str
    name: str
    expected: End
    provoke: Provoke


class Row(NamedTuple):
    """A case as it ended."""

    group: str
    name: str
    expected: End
    found: End | None
    """None: it did not end, or was wrong otherwise."""
    fault: str
    """What else was wrong; empty: nothing."""
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether it ended as it must."""
        return self.found == self.expected and not self.fault


CASES: list[Case] = []


def case(group: str, name: str, expected: str) -> Callable[[Provoke], Provoke]:
    """Registers a provocation; ``expected`` is what ``End.parse`` reads."""

    def register(provoke: Provoke) -> Provoke:
        assert name not in {each.name for each in CASES}, name
        CASES.append(Case(group, name, End.parse(expected), provoke))
        return provoke

    return register


def end_of(record: TryRecord) -> End:
    """How a try ended, and whether the queue tries its attempt again."""
    return End(record.verdict, record.blame, record.cause, record.phase, tried_again(record))


def tried_again(record: TryRecord) -> Retry:
    """What the real queue makes of attempts whose every try ends like this one."""
    queue = WorkQueue(1, Limits(max_tries=MOST_TRIES, poison=100, endpoint_breaker=100))
    queue.enqueue(record.attempt, index=0, cell=record.cell, condition=record.condition)
    tries, now = 0, 0.0
    while leases := queue.lease("node", 1, now):
        tries += 1
        epoch = leases[0].epoch
        queue.ended(record.model_copy(update={"try_": str(epoch), "epoch": tuple(epoch)}), now)
        now += 1000.0
    if tries == 1:
        on_resume = RULES[record.blame].retry is Retry.ON_RESUME
        assert queue.settled
        return Retry.ON_RESUME if on_resume else Retry.NEVER
    return {2: Retry.ONCE, MOST_TRIES: Retry.WHOLE}[tries]
