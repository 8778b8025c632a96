"""What was spent, and what a node may spend of a sweep's budget."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workers.contract.base import Strict

Count = Annotated[int, Field(ge=0)]
Dollars = Annotated[float, Field(ge=0)]

ROUNDING = 1e-9
"""Of a limit: so much less counts as all of it, since ten times 0.1 is below 1."""


def is_reached(limit: float, spent: float) -> bool:
    """Whether what is spent leaves nothing of a limit."""
    return spent >= limit * (1.0 - ROUNDING)


class Spending(Strict):
    """What budgets count: as reported, or assumed where a provider said nothing."""

    calls: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Dollars = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )

    def less(self, other: Spending) -> Spending:
        """Without another; never below nothing."""
        return Spending(
            calls=max(0, self.calls - other.calls),
            input_tokens=max(0, self.input_tokens - other.input_tokens),
            output_tokens=max(0, self.output_tokens - other.output_tokens),
            cost_usd=max(0.0, self.cost_usd - other.cost_usd),
        )


class Allowance(Strict):
    """Up to where a node's spending may go, counted from its start under this driver.

    Ceilings and not amounts, so that orders that arrive twice or never do no harm; null is no
    limit.
    """

    calls: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Dollars | None = None

    def reached(self, spent: Spending) -> bool:
        """Whether the spending leaves no room in some respect."""
        return any(
            limit is not None and is_reached(limit, value)
            for limit, value in (
                (self.calls, spent.calls),
                (self.input_tokens, spent.input_tokens),
                (self.output_tokens, spent.output_tokens),
                (self.cost_usd, spent.cost_usd),
            )
        )

    def not_below(self, spent: Spending) -> Allowance:
        """The same, raised to what is spent already: what is gone cannot be taken back."""
        return Allowance(
            calls=None if self.calls is None else max(self.calls, spent.calls),
            input_tokens=None
            if self.input_tokens is None
            else max(self.input_tokens, spent.input_tokens),
            output_tokens=None
            if self.output_tokens is None
            else max(self.output_tokens, spent.output_tokens),
            cost_usd=None if self.cost_usd is None else max(self.cost_usd, spent.cost_usd),
        )
