"""How a limit grows again after a refusal."""

from __future__ import annotations

import pytest

from scheduler.permits.curve import Curve


@pytest.mark.parametrize(("spans", "share"), [(0, 0.8), (0.5, 0.975), (1, 1), (2, 1.2), (3, 2.6)])
def test_it_rises_fast_is_flat_at_the_top_and_then_looks_for_more(
    spans: float, share: float
) -> None:
    curve = Curve(50.0)
    curve.grow(spans * 30.0, 30.0)
    assert curve.value == pytest.approx(50.0 * share)
