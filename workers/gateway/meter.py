"""What an agent may spend: decided before a request is forwarded. Pure.

A limit that is reached refuses the next call. Calls in flight count with the most that they
may cost, so that several at once cannot pass a limit that one alone would meet; where only they
leave no room, a call waits for them, since most come to far less, and a budget that is not spent
refuses nothing. A call of unknown usage is charged with that most as well: unknown is never zero.
A call that failed by the provider's fault is charged with what the provider reported and nothing
else, since its fault is never the model's; its cost stays unknown in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.contract.budget import Spending, is_reached
from workers.contract.condition import Budget, Prices
from workers.gateway.ledger import PROVIDER_FAULTS, REFUSALS, CallResult
from workers.gateway.reading import Tokens

BYTES_PER_TOKEN = 4
"""Of a request's JSON; for calls in flight and of unknown usage only."""
OUTPUT_TOKENS = 65_536
"""Assumed of such a call if it names no limit: the default of Buzz's agent."""


@dataclass(frozen=True)
class AgentAccess:
    """What one agent of a trial may use, and at which prices."""

    agent: str
    endpoint: str
    prices: Prices
    budget: Budget


@dataclass(frozen=True)
class Charge:
    """What was, or may be, spent."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )

    def as_spending(self, calls: int) -> Spending:
        """As records and the sweep's budget count it."""
        return Spending(
            calls=calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.cost_usd,
        )


def cost_usd(prices: Prices, tokens: Tokens) -> float | None:
    """US dollars of one call; None where input or output is not known.

    Cached tokens are a part of the input. Where a provider reports no cached count, the
    condition's ``cache_read_rate`` of the input is taken as cached.
    """
    if tokens.input is None or tokens.output is None:
        return None
    cached: float = tokens.cached if tokens.cached is not None else 0
    if tokens.cached is None and prices.cache_read_rate is not None:
        cached = tokens.input * prices.cache_read_rate
    cached = min(cached, tokens.input)
    total = (
        (tokens.input - cached) * prices.input_per_million_usd
        + cached * prices.cached_input_per_million_usd
        + tokens.output * prices.output_per_million_usd
    )
    return total / 1_000_000


def uncached_cost_usd(prices: Prices, tokens: Tokens) -> float | None:
    """US dollars of one call as if no cache had been read; None: unknown."""
    if tokens.input is None or tokens.output is None:
        return None
    total = (
        tokens.input * prices.input_per_million_usd + tokens.output * prices.output_per_million_usd
    )
    return total / 1_000_000


def most(prices: Prices, body_bytes: int, max_output_tokens: int | None) -> Charge:
    """The most that a call is taken to cost before its usage is known."""
    given = -(-body_bytes // BYTES_PER_TOKEN)
    made = max_output_tokens if max_output_tokens is not None else OUTPUT_TOKENS
    cost = cost_usd(prices, Tokens(input=given, cached=0, output=made))
    return Charge(1, given, made, cost or 0.0)


def spent(result: CallResult, tokens: Tokens, cost: float | None, assumed: Charge) -> Charge:
    """What an ended call is charged with."""
    if result in REFUSALS:
        return Charge()
    is_fault = result in PROVIDER_FAULTS
    if cost is not None and tokens.input is not None and tokens.output is not None:
        return Charge(0 if is_fault else 1, tokens.input, tokens.output, cost)
    return Charge() if is_fault else assumed


@dataclass
class Meter:
    """One budget, and what its calls have spent and may still spend."""

    budget: Budget
    settled: Charge = Charge()
    held: dict[int, Charge] = field(default_factory=dict)
    """By request number, of the calls in flight."""

    def reached(self) -> str | None:
        """The first limit that is spent, as a person reads it; None: none."""
        return self._first_reached(self.settled)

    @property
    def is_full(self) -> bool:
        """Whether the next call must wait for those in flight: they may spend what is left."""
        return self._first_reached(sum(self.held.values(), self.settled)) is not None

    def _first_reached(self, total: Charge) -> str | None:
        budget = self.budget
        for name, limit, value in (
            ("max_calls", budget.max_calls, total.calls),
            ("max_input_tokens", budget.max_input_tokens, total.input_tokens),
            ("max_output_tokens", budget.max_output_tokens, total.output_tokens),
            ("max_cost_usd", budget.max_cost_usd, total.cost_usd),
        ):
            if limit is not None and is_reached(limit, value):
                return f"{name} {limit}"
        return None

    def hold(self, request: int, charge: Charge) -> None:
        """Notes a call that is let go."""
        self.held[request] = charge

    def settle(self, request: int, charge: Charge) -> None:
        """Replaces what was held for a call by what it came to."""
        del self.held[request]
        self.settled = self.settled + charge
