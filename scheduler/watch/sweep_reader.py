"""How a sweep stands, read from its store again and again. Blocks.

*Who is at work:* a driver writes its document every few seconds. One that stands still for fifteen
seconds, by this reader's own clock, has no driver any more; where the driver's process ran on this
machine, that is known at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple

from scheduler.claim_format import at_work, described
from scheduler.live_format import (
    LiveCondition,
    LiveExample,
    LiveFailure,
    LiveSpending,
    LiveSweep,
    read_live,
)
from scheduler.report.collect import collect
from scheduler.report.score import score
from scheduler.report.summary import Rates, Summary
from workers.contract.base import FormatError
from workers.storage.interface import Store, StoreError

SILENT_S = 15.0
DOUBT_S = 6.0
"""Without a new document, until the driver's signs of life are looked for."""
LOOK_S = 5.0
"""Between two looks for them."""
RESULTS_S = 10.0
"""Between two readings of all results, where no driver shows the sweep."""

Standing = Literal["running", "ended", "silent", "taken_up", "results"]


class Moment(NamedTuple):
    """A sweep as it stands."""

    live: LiveSweep
    standing: Standing
    """``silent``: no driver is at work, and none said that it has ended; ``taken_up``: another
    driver begins; ``results``: no driver has shown it, these are its results."""
    still_s: float
    """How long this reader has seen nothing new."""
    driver: str = ""
    """Who takes it up."""
    fault: str = ""
    """Why the store could not be read just now: this is what was known before."""


class SweepReader:
    """Follows one sweep."""

    def __init__(
        self, store: Store, sweep: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Reads nothing yet; ``clock`` is monotonic seconds."""
        self._store = store
        self._sweep = sweep
        self._clock = clock
        self._live: LiveSweep | None = None
        self._moved_at = clock()
        self._looked_at: float | None = None
        self._results: LiveSweep | None = None
        self._results_at = 0.0
        self._driver = ""
        self._last: Moment | None = None
        self._is_silent = False

    def look(self) -> Moment:
        """How it stands now.

        Raises:
            StoreError: the store refused, and never answered before.
            FormatError: a record is not of this version's format, and was not read before.
            LockError: the sweep's lock cannot be read.
        """
        try:
            self._last = self._look()
        except (FormatError, StoreError) as error:
            if self._last is None:
                raise
            return self._last._replace(fault=str(error), still_s=self._clock() - self._moved_at)
        return self._last

    def _look(self) -> Moment:
        now = self._clock()
        found = read_live(self._store, self._sweep)
        known = self._live
        if found is not None and (
            known is None
            or found.generation > known.generation
            or (found.generation == known.generation and found.number != known.number)
        ):
            # A document of an older driver than was seen is one that came late.
            self._is_silent, self._driver = False, ""
            self._live, self._moved_at = found, now
        live = self._live
        if live is None:
            return self._from_results(now)
        still_s = now - self._moved_at
        if self._looked_at is None or (
            (live.has_ended or still_s >= DOUBT_S) and now - self._looked_at >= LOOK_S
        ):
            self._look_for_driver(live)
            self._looked_at = now
        if self._driver:
            return Moment(live, "taken_up", still_s, self._driver)
        if live.has_ended:
            return Moment(live, "ended", still_s)
        if self._is_silent or still_s > SILENT_S:
            return Moment(live, "silent", still_s)
        return Moment(live, "running", still_s)

    def _look_for_driver(self, live: LiveSweep) -> None:
        claim = at_work(self._store, self._sweep)
        is_other = claim is not None and claim.generation > live.generation
        self._driver = described(claim) if claim is not None and is_other else ""
        self._is_silent = claim is None and not live.has_ended

    def _from_results(self, now: float) -> Moment:
        if self._results is None or now - self._results_at >= RESULTS_S:
            self._results = from_results(score(collect(self._store, self._sweep)))
            claim = at_work(self._store, self._sweep)
            self._driver = "" if claim is None else described(claim)
            self._results_at = self._clock()
        standing: Standing = "taken_up" if self._driver else "results"
        return Moment(self._results, standing, 0.0, self._driver)


def from_results(summary: Summary) -> LiveSweep:
    """What a store's results tell of a sweep that no driver shows."""
    rows = [(each.condition, each.rates) for each in summary.conditions]
    rows += [(each.condition, each.rates) for each in summary.canaries if each.condition]
    spent = [each.spent for each in (*summary.cells, *summary.canary_cells)]
    is_open = any(rates.open for _, rates in rows)
    return LiveSweep(
        number=0,
        sweep=summary.sweep,
        generation=0,
        host="",
        time="",
        state="interrupted" if is_open else "settled",
        stopping=False,
        elapsed_s=0.0,
        attempts_per_minute=0.0,
        eta_s=None,
        conditions=tuple(_condition(name, rates) for name, rates in rows),
        spending=LiveSpending(
            calls=sum(each.calls for each in spent),
            input_tokens=sum(each.input_tokens for each in spent),
            output_tokens=sum(each.output_tokens for each in spent),
            cost_usd=sum(each.cost_usd for each in spent),
            complete=not any(each.unknown_cost_calls for each in spent),
        ),
        failures=_failures(summary),
        nodes=(),
        lost_nodes=0,
        parked_endpoints=(),
        throttled_endpoints=(),
        budget_share=None,
        running=(),
    )


def _condition(name: str, rates: Rates) -> LiveCondition:
    return LiveCondition(
        condition=name,
        waiting=rates.open,
        running=0,
        passed=rates.passed,
        failed=rates.failed,
        invalid=rates.invalid,
        invalid_tries=rates.invalid_tries,
    )


def _failures(summary: Summary) -> tuple[LiveFailure, ...]:
    tries: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], LiveExample] = {}
    for each in summary.causes:
        key = (each.blame, each.cause)
        tries[key] += each.tries
        examples.setdefault(
            key,
            LiveExample.model_validate(
                {
                    "attempt": each.example,
                    "try": "",
                    "index": 0,
                    "task": each.task,
                    "condition": each.condition,
                    "node": "",
                    "ended_at": "",
                    "detail": "",
                }
            ),
        )
    return tuple(
        LiveFailure(
            blame=blame, cause=cause, attempts=0, tries=count, examples=(examples[blame, cause],)
        )
        for (blame, cause), count in tries.most_common()
    )
