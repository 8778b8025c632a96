"""The cost of a plan, as ``apiary plan`` shows it."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import click

from scheduler.cli.names import list_sweeps
from scheduler.estimate import Estimate, Tokens, from_results, from_tokens
from scheduler.lock import LockError, read_locks
from scheduler.plan import Plan
from scheduler.report.names import counted
from workers.contract.base import FormatError
from workers.contract.result import TryRecord, is_try_record
from workers.storage import Store
from workers.storage.interface import MissingKeyError

SWEEPS = 20
"""The newest ones are looked through."""
TRIES = 2000
"""Records read at most; each is an object of the store."""
READERS = 8


class TokenPair(click.ParamType[Tokens]):
    """``IN/OUT``: tokens in and out of one attempt."""

    name = "IN/OUT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Tokens:
        """Reads ``12000/800``."""
        if isinstance(value, Tokens):
            return value
        given, slash, made = str(value).replace("_", "").partition("/")
        if not (slash and given.isdecimal() and made.isdecimal()):
            self.fail(f"{value!r} is not of the form IN/OUT, for example 12000/800", param, ctx)
        return Tokens(int(given), int(made))


def estimate_of(plan: Plan, tokens: Tokens | None, store: Store | None) -> Estimate | None:
    """By given tokens, else by what the store has of the same cells; None: by neither.

    Raises:
        StoreError: the store cannot be read.
    """
    if tokens is not None:
        return from_tokens(plan.cells, plan.counts, tokens)
    if store is None:
        return None
    return from_results(plan.cells, plan.counts, earlier_tries(store, plan.counts))


def earlier_tries(store: Store, cells: Container[str]) -> Iterator[TryRecord]:
    """Records of tries of some cells in the newest sweeps of a store, the newest sweep first.

    Raises:
        StoreError: the store cannot be read.
    """
    keys = (
        key
        for sweep in reversed(list_sweeps(store)[-SWEEPS:])
        for key in _try_keys(store, sweep, cells)
    )

    def read(key: str) -> TryRecord | None:
        try:
            return TryRecord.from_json(store.get(key), key)
        except (FormatError, MissingKeyError):
            return None  # Of another version: no basis.

    with ThreadPoolExecutor(READERS, thread_name_prefix="estimate") as pool:
        found = pool.map(read, itertools.islice(keys, TRIES))
        yield from (each for each in found if each is not None)


def _try_keys(store: Store, sweep: str, cells: Container[str]) -> Iterator[str]:
    """The keys of a sweep's tries of some cells: other ones are not read, nor even listed."""
    try:
        locks = read_locks(store, sweep)
    except (FormatError, LockError):
        return  # Of another version: no basis.
    planned = [each for lock in locks for each in lock.cells if each.cell in cells]
    attempts = {attempt for each in planned for attempt in each.ids(sweep)}
    if attempts:
        for key in store.keys(f"sweeps/{sweep}/tries/"):
            if is_try_record(key) and key.split("/")[4] in attempts:
                yield key


def estimate_lines(plan: Plan, estimate: Estimate) -> Iterator[str]:
    """The estimate in sentences."""
    known = estimate.attempts - estimate.unknown
    if not known:
        yield "cost: unknown, no attempt of these conditions is in the store"
        return
    basis = f"from {counted(estimate.basis, 'earlier attempt')}"
    if not estimate.basis:
        basis = "at the tokens given, none cached" if estimate.high_usd else "at prices of 0"
    yield f"cost: {dollars(estimate)} for {counted(known, 'attempt')}, {basis}"
    if estimate.unknown:
        yield f"  and {counted(estimate.unknown, 'attempt')} of conditions never tried: unknown"
    if estimate.unknown_calls:
        calls = counted(estimate.unknown_calls, "earlier call")
        yield f"  too low by {calls} whose cost no provider reported"
    limit = plan.budget.max_cost_usd
    if limit is not None and estimate.high_usd > limit:
        yield f"  ! the sweep's budget is ${limit:g}: it may stop before its end"


def dollars(estimate: Estimate) -> str:
    """A sum, or a range."""
    low, high = f"${estimate.low_usd:.2f}", f"${estimate.high_usd:.2f}"
    return f"about {high}" if low == high else f"{low} to {high}"


def estimate_document(estimate: Estimate | None) -> dict[str, Any] | None:
    """The estimate for machines."""
    return None if estimate is None else asdict(estimate)
