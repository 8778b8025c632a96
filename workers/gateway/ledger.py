"""The usage ledger of a trial: one line a request, and their sums.

Facts only: how a provider answered is read from its status and its body's form, and what is
not known is null, never zero.
"""

from __future__ import annotations

import enum
import errno
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from workers.contract.base import Strict
from workers.contract.budget import Spending
from workers.contract.endpoint import Dialect
from workers.contract.result import Usage
from workers.gateway.errors import GatewayError


class CallResult(enum.StrEnum):
    """How a request ended."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    PROVIDER_5XX = "provider_5xx"
    PROVIDER_AUTH = "provider_auth"
    PROVIDER_UNREACHABLE = "provider_unreachable"
    """Not connected, no answer in time, or the answer broke off."""
    PROVIDER_MALFORMED = "provider_malformed"
    """Answered with success, but not in its dialect; or longer than may be."""
    CLIENT_ERROR = "client_error"
    """The provider refused what the agent asked."""
    REFUSED_BUDGET = "refused_budget"
    """A budget of the condition's is spent."""
    REFUSED_SWEEP_BUDGET = "refused_sweep_budget"
    """The operator's budget for the whole sweep is spent."""
    REFUSED_TOKEN = "refused_token"  # noqa: S105 - the name of a result
    REFUSED_ROUTE = "refused_route"
    """Not a path, a body or a model that this agent may use."""
    CUT = "cut"
    """The agent went away, or the trial was closed, in the middle."""


PROVIDER_FAULTS = frozenset(
    {
        CallResult.RATE_LIMITED,
        CallResult.PROVIDER_5XX,
        CallResult.PROVIDER_AUTH,
        CallResult.PROVIDER_UNREACHABLE,
        CallResult.PROVIDER_MALFORMED,
    }
)
REFUSALS = frozenset(
    {
        CallResult.REFUSED_BUDGET,
        CallResult.REFUSED_SWEEP_BUDGET,
        CallResult.REFUSED_TOKEN,
        CallResult.REFUSED_ROUTE,
    }
)
"""Refused by the gateway itself: nothing was forwarded, nothing spent."""


class LedgerLine(Strict):
    """One request (``usage.jsonl``)."""

    request: int
    """Number in the trial, by arrival, from 1."""
    agent: str | None
    """Null: no token of this trial."""
    endpoint: str | None
    dialect: Dialect | None
    """Null: no path of the gateway's."""
    model: str | None
    """As asked for; null where it was refused."""
    started_s: float
    """Since the trial was opened."""
    seconds: float
    """From its arrival to its end."""
    status: int | None
    """The provider's, or the gateway's own of a refusal; null: no answer came."""
    result: CallResult
    input_tokens: int | None
    """Cached ones included; null: not reported."""
    cached_input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """By the condition's prices; null: unknown."""
    streamed: bool
    retry: int | None
    """The number of the client's repeat, 0 the first time; null: it does not say."""
    finish: str | None
    """Why the model stopped, in the dialect's word."""
    forwarded: bool = True
    """Whether it was sent to the provider."""
    waited_s: float = 0.0
    """Of these seconds: until it was forwarded."""
    held_s: float = 0.0
    """Of these: for its turn at the provider's account."""
    cache_write_tokens: int | None = None
    """Of the input."""
    reasoning_tokens: int | None = None
    """Of the output."""
    uncached_cost_usd: float | None = None
    """As if nothing had been read from a cache; null: unknown."""
    counted: Spending | None = None
    """What the sweep's budget counts of it; null: nothing, it was not let go."""


def usage_of(lines: Iterable[LedgerLine]) -> Usage:
    """The sums over a ledger. A call is a request that was forwarded."""
    everything = list(lines)
    calls = [line for line in everything if line.forwarded and line.result not in REFUSALS]
    return Usage(
        calls=len(calls),
        failed_calls=sum(line.result is not CallResult.OK for line in calls),
        input_tokens=sum(line.input_tokens or 0 for line in calls),
        cached_input_tokens=sum(line.cached_input_tokens or 0 for line in calls),
        cache_write_tokens=sum(line.cache_write_tokens or 0 for line in calls),
        output_tokens=sum(line.output_tokens or 0 for line in calls),
        reasoning_tokens=sum(line.reasoning_tokens or 0 for line in calls),
        cost_usd=math.fsum(line.cost_usd or 0.0 for line in calls),
        uncached_cost_usd=math.fsum(line.uncached_cost_usd or 0.0 for line in calls),
        unknown_cost_calls=sum(line.cost_usd is None for line in calls),
        counted=sum((line.counted for line in everything if line.counted), Spending()),
    )


class Ledger:
    """Keeps the lines, and writes each to its file as its request ends.

    A line that could not be written is no reason to fail a request: the fault is kept, and
    ``close`` raises it.
    """

    def __init__(self, path: Path, heard: Callable[[LedgerLine], None] = lambda line: None) -> None:
        self._heard = heard
        self._lines: list[LedgerLine] = []
        self._fault: OSError | None = None
        try:
            # Unbuffered: a line is in the file, or its fault is known at once.
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise GatewayError(f"the usage ledger cannot be created: {error.strerror}") from error

    def add(self, line: LedgerLine) -> None:
        """Keeps and writes a line."""
        self._lines.append(line)
        self._heard(line)
        if self._file.closed:
            self._fault = self._fault or OSError(errno.EBADF, "a request ended after its trial")
            return
        data = f"{line.to_json()}\n".encode()
        try:
            if self._file.write(data) != len(data):
                self._fault = OSError(errno.EIO, "a line was written in part")
        except OSError as error:
            self._fault = self._fault or error

    def lines(self) -> tuple[LedgerLine, ...]:
        """The lines so far, by arrival of their requests."""
        return tuple(sorted(self._lines, key=lambda line: line.request))

    def close(self) -> None:
        """Flushes the file to disk and closes it.

        Raises:
            GatewayError: a line is not in the file.
        """
        if self._file.closed:
            return
        try:
            with self._file:
                os.fsync(self._file.fileno())
        except OSError as error:
            self._fault = self._fault or error
        if self._fault is not None:
            raise GatewayError(f"the usage ledger is incomplete: {self._fault}") from self._fault
