"""Measuring by turns: what is measured and its reference, one after the other, in every round."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from scheduler.bench.figure import Figure


@dataclass
class Turns:
    """Samples of a quantity and of its reference, as many of one as of the other."""

    name: str
    unit: str
    against: str
    samples: list[float] = field(default_factory=list)
    references: list[float] = field(default_factory=list)

    def add(self, sample: float, reference: float) -> None:
        """One round of both."""
        self.samples.append(sample)
        self.references.append(reference)

    @property
    def figure(self) -> Figure:
        """The median of each, and of the rounds' ratios."""
        return Figure.by_turns(
            self.name, self.samples, self.references, self.unit, against=self.against
        )


def micros(work: Callable[[], object], count: int) -> float:
    """Microseconds of the clock for each of so many things that a call does."""
    began = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - began) / count


async def micros_of(work: Awaitable[object], count: int) -> float:
    """The same of a coroutine."""
    began = time.perf_counter()
    await work
    return 1e6 * (time.perf_counter() - began) / count


def figures(turns: Sequence[Turns]) -> list[Figure]:
    """All of them, in their order."""
    return [each.figure for each in turns]
