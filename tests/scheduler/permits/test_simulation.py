"""The goals of rate control, with providers of several shapes; in virtual time."""

from __future__ import annotations

import pytest

from tests.scheduler.permits.simulation import CASES, REFUSED, USED, Case, simulate

pytestmark = pytest.mark.long


@pytest.mark.parametrize("case", [c for c in CASES if c.goal], ids=lambda case: case.name)
def test_the_allowance_is_used_and_next_to_nothing_is_refused(case: Case) -> None:
    fared = simulate(case)
    assert fared.used >= USED
    assert fared.share_refused <= REFUSED


def test_the_same_seed_gives_the_same_again() -> None:
    first, again = (simulate(CASES[0], 120.0, seed=4) for _ in range(2))
    assert first == again
    assert first != simulate(CASES[0], 120.0, seed=5)
