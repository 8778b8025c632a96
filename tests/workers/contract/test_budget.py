from __future__ import annotations

import pytest

from workers.contract.base import FormatError
from workers.contract.budget import Allowance, Spending

SPENT = Spending(calls=2, input_tokens=30, output_tokens=4, cost_usd=0.5)


def test_spending_adds_up_and_is_never_below_nothing() -> None:
    more = Spending(calls=1, input_tokens=50, cost_usd=0.25)
    assert SPENT + more == Spending(calls=3, input_tokens=80, output_tokens=4, cost_usd=0.75)
    assert SPENT.less(more) == Spending(calls=1, output_tokens=4, cost_usd=0.25)
    assert sum([SPENT, more], Spending()) == SPENT + more


@pytest.mark.parametrize(
    ("allowance", "reached"),
    [
        (Allowance(), False),
        (Allowance(calls=3, input_tokens=31, output_tokens=5, cost_usd=0.51), False),
        (Allowance(calls=2), True),
        (Allowance(input_tokens=30), True),
        (Allowance(output_tokens=4), True),
        (Allowance(cost_usd=0.5), True),
        (Allowance(calls=0), True),
    ],
)
def test_a_ceiling_is_reached_where_nothing_is_left(allowance: Allowance, reached: bool) -> None:
    assert allowance.reached(SPENT) is reached


def test_a_ceiling_is_never_below_what_is_spent() -> None:
    low = Allowance(calls=1, output_tokens=9, cost_usd=0.1)
    assert low.not_below(SPENT) == Allowance(calls=2, output_tokens=9, cost_usd=0.5)


@pytest.mark.parametrize("text", ['{"calls": -1}', '{"cost_usd": "1"}', '{"dollars": 1}'])
def test_what_is_no_spending(text: str) -> None:
    with pytest.raises(FormatError):
        Spending.from_json(text, "spending")
