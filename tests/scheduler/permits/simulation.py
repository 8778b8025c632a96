"""How rate control fares with providers of several shapes: ``python -m
tests.scheduler.permits.simulation`` prints the table of ``docs/rate-control.md``.

Three nodes, 200 agents, and a driver that hears of each node every half second at most. *Used*
is what was admitted of what the provider allowed, and *refused* the share of our requests that
it answered with 429, both after the first minute; where requests and tokens are limited, the
one counts of which more was used.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.scheduler.permits.providers import MINUTE_S, Provider
from tests.scheduler.permits.virtual import run_virtually
from tests.scheduler.permits.world import Habits, World, ended, endpoint, foreign

SECONDS = 900.0
AGENTS = 200
USED = 0.90
REFUSED = 0.01


@dataclass(frozen=True)
class Case:
    """A provider, and what else is asked of it."""

    name: str
    provider: dict[str, Any]
    endpoint: dict[str, Any] = field(default_factory=dict)
    foreign: float = 0.0
    """Requests of others a minute."""
    foreign_from: float = 0.0
    sweeps: int = 1
    """Drivers that know nothing of each other, each with its nodes and a part of the agents."""
    habits: Habits = field(default_factory=Habits)
    goal: bool = True
    """Whether the goals are reached; where not, the document says why."""


@dataclass(frozen=True)
class Fared:
    """What came out."""

    used: float
    refused: float
    share_refused: float
    fairness: float
    """Fewest answers of an agent over the most."""

    @property
    def reached(self) -> bool:
        """Whether both goals are."""
        return self.used >= USED and self.share_refused <= REFUSED


BUCKET = {"shape": "bucket", "requests": 600}
MINUTE = {"shape": "minute", "requests": 600}
CASES = (
    Case("bucket, Retry-After", BUCKET),
    Case("bucket, headers", {**BUCKET, "headers": True}),
    Case("bucket, no word", {**BUCKET, "retry_after": False}),
    Case("bucket of 5 s, Retry-After", {**BUCKET, "full_s": 5.0}),
    Case("minute, Retry-After", MINUTE),
    Case("minute, headers", {**MINUTE, "headers": True}),
    Case("minute, no word", {**MINUTE, "retry_after": False}, goal=False),
    Case("tokens, bucket, Retry-After", {**BUCKET, "requests": 3000, "tokens": 1_000_000}),
    Case(
        "tokens, bucket, headers",
        {**BUCKET, "requests": 3000, "tokens": 1_000_000, "headers": True},
    ),
    Case("tokens, minute, Retry-After", {**MINUTE, "requests": 3000, "tokens": 1_000_000}),
    Case("40 at once, no word", {"shape": "concurrency", "requests": 40, "retry_after": False}),
    Case("40 at once, Retry-After", {"shape": "concurrency", "requests": 40}),
    Case("120 a minute, Retry-After", {**BUCKET, "requests": 120}),
    Case(
        "bucket, halved from 300 s to 600 s",
        {**BUCKET, "changes": lambda s: 0.5 if 300 <= s < 600 else 1.0},
    ),
    Case(
        "bucket, headers, halved from 300 s to 600 s",
        {**BUCKET, "headers": True, "changes": lambda s: 0.5 if 300 <= s < 600 else 1.0},
    ),
    Case("bucket, others take half from 300 s", BUCKET, foreign=300.0, foreign_from=300.0),
    Case("minute, others take half from 300 s", MINUTE, foreign=300.0, foreign_from=300.0),
    Case("bucket, two sweeps at once", BUCKET, sweeps=2),
    Case("minute, two sweeps at once", MINUTE, sweeps=2),
    Case(
        "bucket, a quarter until 300 s",
        {**BUCKET, "changes": lambda s: 0.25 if s < 300 else 1.0},
    ),
    Case("bucket, refused ones count too", {**BUCKET, "refused_count": True}),
    Case("bucket, headers of 100 times as much", {**BUCKET, "headers": True, "says": 100.0}),
    Case(
        "answers take a minute, 120 a minute",
        {**BUCKET, "requests": 120},
        habits=Habits(first_s=55.0, token_s=0.025),
    ),
    Case(
        "40 at once, no word, 20 from 300 s to 600 s",
        {
            "shape": "concurrency",
            "requests": 40,
            "retry_after": False,
            "changes": lambda s: 0.5 if 300 <= s < 600 else 1.0,
        },
        goal=False,
    ),
    Case("60 a minute, no word", {**MINUTE, "requests": 60, "retry_after": False}, goal=False),
    Case("20 a minute, Retry-After", {**BUCKET, "requests": 20}, goal=False),
    Case(
        "4 at once, no word",
        {"shape": "concurrency", "requests": 4, "retry_after": False},
        goal=False,
    ),
    Case("given: 600 a minute", BUCKET, {"requests_per_minute": 600}),
    Case(
        "given: 1,000,000 tokens a minute",
        {**BUCKET, "requests": 3000, "tokens": 1_000_000},
        {"tokens_per_minute": 1_000_000},
    ),
    Case(
        "given: 40 at once",
        {"shape": "concurrency", "requests": 40, "retry_after": False},
        {"max_concurrency": 40},
    ),
)


def simulate(case: Case, seconds: float = SECONDS, seed: int = 1) -> Fared:
    """Runs one case in virtual time."""
    return run_virtually(_simulate(case, seconds, seed))


async def _simulate(case: Case, seconds: float, seed: int) -> Fared:
    provider = Provider(**case.provider)
    worlds = [
        World(
            {"m": provider},
            {"m": endpoint(**case.endpoint)},
            agents=AGENTS // case.sweeps,
            habits=case.habits,
            seed=seed + 100 * number,
        )
        for number in range(case.sweeps)
    ]
    others: asyncio.Task[None] | None = None
    busy: list[tuple[float, int]] = []
    watching = asyncio.create_task(_watch(provider, busy))
    running = asyncio.gather(*(world.run(seconds) for world in worlds))
    if case.foreign:
        await asyncio.sleep(case.foreign_from)
        others = asyncio.create_task(foreign(provider, case.foreign))
    await running
    if others is not None:
        await ended(others)
    await ended(watching)
    admitted = sum(at >= MINUTE_S for at in provider.admitted)
    refused = sum(at >= MINUTE_S for at in provider.refused)
    factor = sum(provider.changes(float(at)) for at in range(int(MINUTE_S), int(seconds)))
    left = 0.0 if not case.foreign else case.foreign * max(0.0, seconds - case.foreign_from)
    used = 0.0
    if provider.shape == "concurrency":
        at_once = [count for at, count in busy if at >= MINUTE_S]
        factors = [provider.changes(at) for at, _ in busy if at >= MINUTE_S]
        used = sum(at_once) / sum(factors) / provider.requests
    else:
        if provider.requests < math.inf:
            used = admitted / ((provider.requests * factor - left) / MINUTE_S)
        if provider.tokens < math.inf:
            tokens = sum(count for at, count in provider.used_tokens if at >= MINUTE_S)
            used = max(used, tokens / (provider.tokens * factor / MINUTE_S))
    counts = worlds[0].by_agent.values()
    return Fared(
        used,
        refused,
        refused / max(1, admitted + refused),
        min(counts) / max(counts),
    )


async def _watch(provider: Provider, busy: list[tuple[float, int]]) -> None:
    while True:
        busy.append((provider.now, provider.under_way))
        await asyncio.sleep(0.5)


def table(cases: tuple[Case, ...] = CASES, run: Callable[[Case], Fared] = simulate) -> str:
    """The table in Markdown."""
    lines = ["| provider | used | refused | goals |", "|---|---|---|---|"]
    for case in cases:
        fared = run(case)
        met = "reached" if fared.reached else "not reached"
        lines.append(f"| {case.name} | {fared.used:.1%} | {fared.share_refused:.2%} | {met} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    chosen = tuple(case for case in CASES if asked.only in case.name)
    sys.stdout.write(table(chosen, lambda case: simulate(case, asked.seconds, asked.seed)) + "\n")


if __name__ == "__main__":
    main()
