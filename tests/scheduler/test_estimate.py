from __future__ import annotations

import math

import pytest

from scheduler.estimate import Tokens, from_results, from_tokens
from tests.scheduler.builders import cells, lease, record
from workers.contract.condition import Prices
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, Usage
from workers.contract.spec import CellSpec

PRICES = Prices(
    input_per_million_usd=1.0, cached_input_per_million_usd=0.1, output_per_million_usd=2.0
)
FREE = Prices(
    input_per_million_usd=0.0, cached_input_per_million_usd=0.0, output_per_million_usd=0.0
)


def at(prices: Prices, cell: CellSpec) -> CellSpec:
    """The cell with its models at these prices, under its old digests."""
    given = {"prices": dict.fromkeys(cell.condition.prices, prices)}
    return cell.model_copy(update={"condition": cell.condition.model_copy(update=given)})


MADE = [at(PRICES, cell) for cell in cells(conditions=2, tasks=2).values()]
COUNTS = {cell.cell: 3 for cell in MADE}


def tried(
    cell: CellSpec, attempt: str, cost: float, *, cause: Cause = Cause.NONE, unknown: int = 0
) -> TryRecord:
    usage = Usage(calls=1, cost_usd=cost, unknown_cost_calls=unknown)
    made = record(cell, lease(cell), cause)
    return made.model_copy(update={"usage": usage, "attempt": attempt})


def test_given_tokens_at_the_conditions_prices() -> None:
    (prices,) = MADE[0].condition.prices.values()
    one = (2_000_000 * prices.input_per_million_usd + 500_000 * prices.output_per_million_usd) / 1e6
    estimate = from_tokens(MADE, COUNTS, Tokens(2_000_000, 500_000))
    assert estimate.low_usd == estimate.high_usd == pytest.approx(12 * one)
    assert (estimate.attempts, estimate.unknown, estimate.basis) == (12, 0, 0)


def test_a_roster_with_several_endpoints_is_a_range() -> None:
    entry = MADE[0].condition.roster[0]
    cheap, dear = (
        MADE[0].condition.prices[entry.endpoint].model_copy(update={"input_per_million_usd": price})
        for price in (1.0, 5.0)
    )
    other = entry.model_copy(update={"id": "w", "kind": "worker", "endpoint": "dear"})
    condition = MADE[0].condition.model_copy(
        update={"roster": (entry, other), "prices": {entry.endpoint: cheap, "dear": dear}}
    )
    cell = MADE[0].model_copy(update={"condition": condition})
    estimate = from_tokens([cell], COUNTS, Tokens(1_000_000, 0))
    assert (estimate.low_usd, estimate.high_usd) == (3.0, 15.0)


def test_earlier_attempts_of_the_same_cells_with_all_their_tries() -> None:
    tries = [
        tried(MADE[0], "a", 0.5, cause=Cause.NODE_LOST),
        tried(MADE[0], "a", 0.5),
        tried(MADE[0], "b", 2.0, unknown=2),
        tried(MADE[1].model_copy(update={"cell": "of another sweep"}), "c", 99.0),
    ]
    estimate = from_results([MADE[0]], COUNTS, tries)
    # Attempts of 1 and 2 dollars: mean 1.5, variance 0.5.
    margin = 2 * math.sqrt(9 * 0.5 / 2 + 3 * 0.5)
    assert estimate.low_usd == pytest.approx(4.5 - margin)
    assert estimate.high_usd == pytest.approx(4.5 + margin)
    assert (estimate.basis, estimate.unknown, estimate.unknown_calls) == (2, 0, 2)


def test_a_cell_never_tried_is_taken_for_its_conditions_others_or_is_unknown() -> None:
    by_condition: dict[str, list[CellSpec]] = {}
    for cell in MADE:
        by_condition.setdefault(cell.condition.digest, []).append(cell)
    known, _ = by_condition.values()
    estimate = from_results(MADE, COUNTS, [tried(known[0], "a", 0.25)])
    assert estimate.low_usd == estimate.high_usd == pytest.approx(6 * 0.25)
    assert (estimate.attempts, estimate.unknown, estimate.basis) == (12, 6, 1)
    assert from_results(MADE, COUNTS, []).unknown == 12


def test_what_is_free_is_known_without_a_basis() -> None:
    estimate = from_results([MADE[0], at(FREE, MADE[1])], COUNTS, [])
    assert (estimate.attempts, estimate.unknown, estimate.basis) == (6, 3, 0)
