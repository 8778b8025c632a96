"""Tests of paired differences, and Holm's correction for several of them. Pure."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

MAX_SUMS = 50_000
"""Different sums that an exact distribution may have; beyond, signs are drawn at random."""
DRAWS = 20_000
SEED = 20_260_101


class PermutationTest(NamedTuple):
    """Whether differences by task could be chance alone."""

    p: float
    """Two-sided: the share of all sign changes that move the sum at least as far from 0."""
    method: Literal["exact", "monte_carlo"]


def sign_flips(differences: Sequence[Fraction], max_sums: int = MAX_SUMS) -> PermutationTest:
    """The sign-flip permutation test of paired differences (Fisher 1935, section 21).

    If the two sides do not differ, each task's difference could as well have had the other sign.
    All 2^T ways are counted exactly by the distribution of their sums, which stays small since
    rates are fractions of few attempts; where it does not, ``DRAWS`` ways are drawn with a fixed
    seed, and the observed one counts as one of them.

    Args:
        differences: of each task, exact fractions.
        max_sums: above so many different sums, signs are drawn.
    """
    scale = math.lcm(*(each.denominator for each in differences)) if differences else 1
    steps = [abs(int(each * scale)) for each in differences if each]
    observed = abs(sum(int(each * scale) for each in differences))
    sums: dict[int, int] = {0: 1}
    for step in steps:
        following: Counter[int] = Counter()
        for total, ways in sums.items():
            following[total + step] += ways
            following[total - step] += ways
        if len(following) > max_sums:
            return _drawn(steps, observed)
        sums = following
    extreme = sum(ways for total, ways in sums.items() if abs(total) >= observed)
    return PermutationTest(float(Fraction(extreme, 1 << len(steps))), "exact")


def holm(p_values: Iterable[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values in the order given (Holm 1979).

    The chance of one or more false claims among all of them stays below the level, however they
    depend on each other.
    """
    values = list(p_values)
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted, worst = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        worst = max(worst, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = worst
    return tuple(adjusted)


def _drawn(steps: Sequence[int], observed: int) -> PermutationTest:
    source = random.Random(SEED)
    extreme = 1
    for _ in range(DRAWS):
        signs = source.getrandbits(len(steps))
        total = sum(step if signs >> place & 1 else -step for place, step in enumerate(steps))
        extreme += abs(total) >= observed
    return PermutationTest(extreme / (DRAWS + 1), "monte_carlo")
