"""What a plan may cost: from what its cells cost before, or from given tokens per attempt. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workers.contract.condition import Condition, Prices
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec


@dataclass(frozen=True)
class Tokens:
    """Tokens of one attempt, of all its agents together."""

    input: int
    output: int


@dataclass(frozen=True)
class Estimate:
    """The cost of a plan's attempts in US dollars."""

    low_usd: float
    high_usd: float
    """Both the same where nothing is uncertain but the cells without a basis."""
    attempts: int
    """Of the plan."""
    unknown: int
    """Of them without a basis: their cost is not in the figures."""
    basis: int
    """Attempts that the figures rest on; 0: on given tokens."""
    unknown_calls: int = 0
    """Model calls of the basis whose cost no provider reported; the figures are too low by them."""


def from_tokens(cells: Iterable[CellSpec], counts: Mapping[str, int], tokens: Tokens) -> Estimate:
    """Every attempt takes these tokens, none of them cached.

    A roster with several endpoints is between its cheapest and its dearest: which of its agents
    takes how much is not known.
    """
    low = high = 0.0
    attempts = 0
    for cell in cells:
        costs = [_cost(prices, tokens) for prices in _prices(cell.condition)]
        low += counts[cell.cell] * min(costs)
        high += counts[cell.cell] * max(costs)
        attempts += counts[cell.cell]
    return Estimate(low, high, attempts, unknown=0, basis=0)


def from_results(
    cells: Sequence[CellSpec], counts: Mapping[str, int], tries: Iterable[TryRecord]
) -> Estimate:
    """What attempts of the same cells cost before, their invalid tries included.

    A cell without such attempts is taken for the mean of its condition's others; one whose models
    are free, as a canary's is, costs nothing. The range is two
    standard deviations of the sum to each side: that of the means, and that of what is to come.
    """
    wanted = {cell.cell for cell in cells}
    cost: dict[str, dict[tuple[str, str], float]] = {}
    unknown_calls = 0
    for each in tries:
        if each.cell in wanted:
            attempts = cost.setdefault(each.cell, {})
            key = (each.sweep, each.attempt)
            attempts[key] = attempts.get(key, 0.0) + each.usage.cost_usd
            unknown_calls += each.usage.unknown_cost_calls
    found = {cell: list(attempts.values()) for cell, attempts in cost.items()}
    by_condition: dict[str, list[float]] = {}
    for cell in cells:
        by_condition.setdefault(cell.condition.digest, []).extend(found.get(cell.cell, ()))
    total = variance = 0.0
    unknown = 0
    for cell in cells:
        count = counts[cell.cell]
        basis = found.get(cell.cell) or by_condition[cell.condition.digest]
        if not basis:
            unknown += 0 if _is_free(cell.condition) else count
            continue
        total += count * statistics.fmean(basis)
        if len(basis) > 1:
            # Of the mean that it rests on, and of the attempts to come.
            spread = statistics.variance(basis)
            variance += count**2 * spread / len(basis) + count * spread
    margin = 2 * math.sqrt(variance)
    return Estimate(
        low_usd=max(0.0, total - margin),
        high_usd=total + margin,
        attempts=sum(counts[cell.cell] for cell in cells),
        unknown=unknown,
        basis=sum(len(each) for each in found.values()),
        unknown_calls=unknown_calls,
    )


def _prices(condition: Condition) -> list[Prices]:
    return [condition.prices[name] for name in condition.endpoints]


def _is_free(condition: Condition) -> bool:
    return all(
        each.input_per_million_usd == each.output_per_million_usd == 0.0
        for each in _prices(condition)
    )


def _cost(prices: Prices, tokens: Tokens) -> float:
    total = (
        tokens.input * prices.input_per_million_usd + tokens.output * prices.output_per_million_usd
    )
    return total / 1_000_000
