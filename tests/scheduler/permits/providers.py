"""Simulated providers that refuse what is over their allowance."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Shape = Literal["bucket", "minute", "concurrency"]
Headers = list[tuple[str, str]]
MINUTE_S = 60.0


@dataclass
class Provider:
    """Requests and tokens a minute, or requests at once.

    ``bucket`` refills evenly and holds what ``full_s`` seconds bring; ``minute`` counts anew with
    every minute. Tokens are counted when an answer ends, as the real ones do for output.
    """

    shape: Shape
    requests: float = math.inf
    """A minute; for ``concurrency``: at once."""
    tokens: float = math.inf
    retry_after: bool = True
    headers: bool = False
    says: float = 1.0
    """By what its headers overstate the allowance."""
    refused_count: bool = False
    """Whether refused requests use up the allowance too."""
    full_s: float = 60.0
    changes: Callable[[float], float] = lambda _: 1.0
    """Seconds since the start -> by what the allowance is multiplied."""
    down: Callable[[float], bool] = lambda _: False
    """Seconds since the start -> whether it answers 503."""
    started: float = 0.0
    admitted: list[float] = field(default_factory=list)
    """When."""
    refused: list[float] = field(default_factory=list)
    used_tokens: list[tuple[float, int]] = field(default_factory=list)
    under_way: int = 0
    _left: list[float] = field(default_factory=list)
    _at: float = 0.0

    def __post_init__(self) -> None:
        self.started = self._at = asyncio.get_running_loop().time()
        share = self.full_s / MINUTE_S if self.shape == "bucket" else 1.0
        self._left = [self.requests * share, self.tokens * share]

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return asyncio.get_running_loop().time() - self.started

    async def ask(
        self, tokens_in: int, tokens_out: int, seconds: float, *, foreign: bool = False
    ) -> tuple[int, Headers]:
        """One request: status and headers come at its end, a refusal after 50 ms."""
        await asyncio.sleep(0.02)
        if self.down(self.now):
            await asyncio.sleep(0.03)
            return 503, []
        wait_s = self._admit()
        if wait_s is not None:
            if not foreign:
                self.refused.append(self.now)
            await asyncio.sleep(0.03)
            told = [("Retry-After", str(max(1, math.ceil(wait_s))))] if self.retry_after else []
            return 429, told + self._limits()
        if not foreign:
            self.admitted.append(self.now)
        self.under_way += 1
        self._left[1] -= tokens_in
        try:
            await asyncio.sleep(seconds)
        finally:
            self.under_way -= 1
            self._left[1] -= tokens_out
        if not foreign:
            self.used_tokens.append((self.now, tokens_in + tokens_out))
        return 200, self._limits()

    def _admit(self) -> float | None:
        """How long to wait where there is no room; None: it is admitted."""
        factor = self.changes(self.now)
        if self.shape == "concurrency":
            return None if self.under_way < int(self.requests * factor) else 1.0
        self._refill(factor)
        if min(self._left) < 1:
            if self.refused_count:
                self._left[0] = max(0.0, self._left[0] - 1)
            if self.shape == "minute":
                return MINUTE_S - self.now % MINUTE_S
            waits = (
                (1 - left) * MINUTE_S / (limit * factor)
                for left, limit in zip(self._left, (self.requests, self.tokens), strict=True)
                if left < 1
            )
            return max(waits)
        self._left[0] -= 1
        return None

    def _refill(self, factor: float) -> None:
        now = asyncio.get_running_loop().time()
        seconds, before = now - self._at, self._at - self.started
        self._at = now
        for index, limit in enumerate((self.requests, self.tokens)):
            if self.shape == "minute":
                if int(self.now / MINUTE_S) != int(before / MINUTE_S):
                    self._left[index] = limit * factor
            else:
                bound = limit * factor * self.full_s / MINUTE_S
                gained = limit * factor * seconds / MINUTE_S if limit < math.inf else 0.0
                self._left[index] = min(bound, self._left[index] + gained)

    def _limits(self) -> Headers:
        if not self.headers:
            return []
        factor = self.changes(self.now)
        return [
            (f"x-ratelimit-limit-{name}", str(int(limit * factor * self.says)))
            for name, limit in (("requests", self.requests), ("tokens", self.tokens))
            if limit < math.inf
        ]
