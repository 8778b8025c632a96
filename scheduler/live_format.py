"""``live.json``: what a sweep's driver shows of it while it runs, for whoever reaches the store.

It says nothing that counts: results are in ``attempts/`` and ``tries/``. The driver with the
highest generation writes it; a reader judges by its own clock how long ``number`` stood still.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from workers.contract.base import FormatError, Strict
from workers.storage.interface import MissingKeyError, Store

RUNNING_SHOWN = 64
"""Running trials that are named."""
EXAMPLES = 3
"""Of each cause, the newest."""
NOTES_SHOWN = 5
DETAIL_MAX = 300
"""Characters of a detail or a note."""

LiveState = Literal[
    "starting", "running", "settled", "interrupted", "infrastructure", "budget", "failed"
]


class LiveCondition(Strict):
    """The attempts of one condition, each counted in exactly one of the first five."""

    condition: str
    waiting: int
    running: int
    passed: int
    failed: int
    invalid: int
    invalid_tries: int


class LiveExample(Strict):
    """A try that is no pass."""

    attempt: str
    try_: str = Field(alias="try")
    index: int
    task: str
    condition: str
    node: str
    ended_at: str
    detail: str


class LiveFailure(Strict):
    """What is no pass, by who caused it."""

    blame: str
    cause: str
    attempts: int
    """Settled or waiting to be tried again, whose last try ended so."""
    tries: int
    """Under this driver."""
    examples: tuple[LiveExample, ...] = ()
    """Under this driver, the newest first."""


class LiveNode(Strict):
    """One node."""

    node: str
    running: int
    free_slots: int
    draining: str
    """Why it takes no leases; empty: it does."""


class LiveRunning(Strict):
    """A running trial."""

    attempt: str
    try_: str = Field(alias="try")
    index: int
    task: str
    condition: str
    node: str
    phase: str


class LiveSpending(Strict):
    """What ended tries have spent."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    complete: bool = True
    """Whether nothing is missing: calls of unknown cost, or tries of a driver that was killed."""


class LiveSweep(Strict):
    """One moment of a sweep."""

    schema_version: Literal[1] = 1
    number: int
    """Grows with each document of its driver."""
    sweep: str
    generation: int
    host: str
    time: str
    """By the driver's clock; RFC 3339, UTC."""
    state: LiveState
    reason: str = ""
    """Why it ended so."""
    stopping: bool
    elapsed_s: float
    """Of this driver."""
    attempts_per_minute: float
    eta_s: float | None
    conditions: tuple[LiveCondition, ...]
    spending: LiveSpending
    failures: tuple[LiveFailure, ...]
    nodes: tuple[LiveNode, ...]
    lost_nodes: int
    parked_endpoints: tuple[str, ...]
    throttled_endpoints: tuple[str, ...]
    budget_share: float | None
    running: tuple[LiveRunning, ...]
    """The first ``RUNNING_SHOWN`` of them."""
    notes: tuple[str, ...] = ()
    """The last sentences for the operator."""

    @property
    def has_ended(self) -> bool:
        """Whether its driver is done with it."""
        return self.state not in ("starting", "running")


def live_key(sweep: str) -> str:
    """The key of a sweep's document."""
    return f"sweeps/{sweep}/live.json"


def read_live(store: Store, sweep: str) -> LiveSweep | None:
    """A sweep's document; None where there is none that can be read. Blocks.

    Raises:
        StoreError: the store refused.
    """
    key = live_key(sweep)
    try:
        return LiveSweep.from_json(store.get(key), key)
    except (FormatError, MissingKeyError):
        return None


def generation_there(store: Store, sweep: str) -> int:
    """The driver generation of a sweep's document, whatever its version; 0: there is none. Blocks.

    Raises:
        StoreError: the store refused.
    """
    try:
        document = json.loads(store.get(live_key(sweep)))
    except (MissingKeyError, ValueError):
        return 0
    found = document.get("generation") if isinstance(document, dict) else None
    return found if isinstance(found, int) else 0
