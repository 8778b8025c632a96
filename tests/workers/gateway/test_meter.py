from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.contract.condition import Budget, Prices
from workers.gateway.ledger import PROVIDER_FAULTS, REFUSALS, CallResult
from workers.gateway.meter import (
    OUTPUT_TOKENS,
    Charge,
    Meter,
    cost_usd,
    most,
    spent,
    uncached_cost_usd,
)
from workers.gateway.reading import Tokens

PRICES = Prices(
    input_per_million_usd=3, cached_input_per_million_usd=0.3, output_per_million_usd=15
)
RATED = PRICES.model_copy(update={"cache_read_rate": 0.5})


@pytest.mark.parametrize(
    ("prices", "tokens", "cost"),
    [
        (PRICES, Tokens(1_000_000, 0, 0), 3.0),
        (PRICES, Tokens(1_000_000, 1_000_000, 0), 0.3),
        (PRICES, Tokens(1_000_000, 400_000, 200_000), 1.8 + 0.12 + 3.0),
        (PRICES, Tokens(1_000_000, None, 0), 3.0),
        (RATED, Tokens(1_000_000, None, 0), 1.65),
        (RATED, Tokens(1_000_000, 0, 0), 3.0),
        (PRICES, Tokens(10, 1_000_000, 0), 10 * 0.3 / 1e6),
        (PRICES, Tokens(None, 0, 5), None),
        (PRICES, Tokens(5, 0, None), None),
        (PRICES, Tokens(), None),
    ],
)
def test_costs(prices: Prices, tokens: Tokens, cost: float | None) -> None:
    found = cost_usd(prices, tokens)
    assert found == (None if cost is None else pytest.approx(cost))


def test_costs_without_the_cache() -> None:
    tokens = Tokens(1000, 400, 100)
    assert cost_usd(PRICES, tokens) == pytest.approx((600 * 3 + 400 * 0.3 + 100 * 15) / 1e6)
    assert uncached_cost_usd(PRICES, tokens) == pytest.approx((1000 * 3 + 100 * 15) / 1e6)
    assert uncached_cost_usd(PRICES, Tokens(1000, 400, None)) is None


def test_what_a_call_may_cost_at_most() -> None:
    assert most(PRICES, 41, 100) == Charge(1, 11, 100, (11 * 3 + 100 * 15) / 1_000_000)
    assert most(PRICES, 0, None).output_tokens == OUTPUT_TOKENS


@pytest.mark.parametrize("result", list(CallResult))
def test_what_an_ended_call_is_charged_with(result: CallResult) -> None:
    assumed = Charge(1, 10, 20, 0.5)
    if result in REFUSALS:
        assert spent(result, Tokens(0, 0, 0), 0.0, assumed) == Charge()
        return
    calls = 0 if result in PROVIDER_FAULTS else 1
    assert spent(result, Tokens(3, 0, 4), 0.1, assumed) == Charge(calls, 3, 4, 0.1)
    unknown = spent(result, Tokens(3, 0, None), None, assumed)
    assert unknown == (Charge() if result in PROVIDER_FAULTS else assumed)


@pytest.mark.parametrize(
    ("budget", "charge", "reached"),
    [
        (Budget(), Charge(10**6, 10**9, 10**9, 1e6), None),
        (Budget(max_calls=2), Charge(1), None),
        (Budget(max_calls=2), Charge(2), "max_calls 2"),
        (Budget(max_input_tokens=10), Charge(1, 9), None),
        (Budget(max_input_tokens=10), Charge(1, 10), "max_input_tokens 10"),
        (Budget(max_output_tokens=10), Charge(1, 0, 11), "max_output_tokens 10"),
        (Budget(max_cost_usd=0.5), Charge(1, 0, 0, 0.5), "max_cost_usd 0.5"),
    ],
)
def test_limits(budget: Budget, charge: Charge, reached: str | None) -> None:
    assert Meter(budget, settled=charge).reached() == reached
    assert Meter(budget, settled=charge).is_full == (reached is not None)
    held = Meter(budget, held={1: charge})
    assert (held.reached(), held.is_full) == (None, reached is not None)


def test_a_limit_in_dollars_is_reached_by_the_last_cent() -> None:
    meter = Meter(Budget(max_cost_usd=1.0))
    for number in range(10):
        assert meter.reached() is None
        meter.hold(number, Charge(1, 0, 0, 0.1))
        meter.settle(number, Charge(1, 0, 0, 0.1))
    assert meter.settled.cost_usd < 1.0
    assert meter.reached() == "max_cost_usd 1.0"


CHARGES = st.builds(
    Charge,
    st.integers(0, 2),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 5).map(float),
)


@given(st.lists(st.tuples(CHARGES, CHARGES), max_size=12), st.data())
def test_held_calls_are_replaced_by_what_they_came_to(
    calls: list[tuple[Charge, Charge]], data: st.DataObject
) -> None:
    meter = Meter(Budget())
    for number, (assumed, _) in enumerate(calls):
        meter.hold(number, assumed)
    order = data.draw(st.permutations(range(len(calls))))
    for number in order:
        meter.settle(number, calls[number][1])
    assert meter.held == {}
    assert meter.settled == sum((actual for _, actual in calls), Charge())
