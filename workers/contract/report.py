"""The batched exchange between driver and node."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

from pydantic import Field

from workers.contract.base import Strict, canonical_json, sha256_hex
from workers.contract.budget import Allowance, Spending
from workers.contract.permits import AccountNews, EndpointNews, Loan
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Epoch, Lease, SweepSpec

MEANING = 1
"""Raised when driver and node change what they mean by a field without changing its format."""


class Orders(Strict):
    """Driver to node: new leases, and what else to do. Receiving it renews every held lease."""

    generation: int
    received: int = 0
    """The number of the last answer that arrived: what it reported need not be sent again."""
    leases: tuple[Lease, ...] = ()
    cells: dict[str, CellSpec] = Field(default_factory=dict)
    """Cells that this node has not been given yet."""
    stop: Literal["no", "cancel"] = "no"
    """``cancel``: end running trials now, as the operator's doing."""
    wait_s: Annotated[float, Field(ge=0)] = 1.0
    """How long the node may hold the answer when it has nothing to say."""
    clock_skew_s: float | None = None
    """How far the node's wall clock is ahead of the driver's, for the records of its tries; null:
    by too little to matter, or not measured."""
    allowance: Allowance | None = None
    """Up to where the node may spend of the sweep's budget; null: there is none."""
    budget_spent: bool = False
    """Whether the sweep's budget is spent: calls that wait for more are refused."""
    permits: dict[str, Loan] = Field(default_factory=dict)
    """What the node may do at each account; one that is not named keeps what it was lent."""
    watched: tuple[str, ...] = ()
    """Attempts that somebody follows: the node shows those of them that it runs."""

    def to_json(self) -> str:
        """One line; nobody keeps it, so its keys are left as they are, which is far quicker."""
        return self.model_dump_json(by_alias=True)


class RunningTry(Strict):
    """A try that a node runs, whichever driver leased it."""

    attempt: str
    epoch: Epoch
    phase: str


class Progress(Strict):
    """Node to driver: what ended, what runs, what is free."""

    node: str
    number: int = 0
    """Grows with every answer of the node; what ended is repeated until it is acknowledged."""
    generation: int = 0
    """The highest driver generation that the node has seen; above the asker's: it is obsolete."""
    ended: tuple[TryRecord, ...] = ()
    """Tries that ended; those with verdict pass or fail are already committed."""
    superseded: tuple[str, ...] = ()
    """Attempts whose commit by another try was found in the store."""
    late: tuple[TryRecord, ...] = ()
    """Tries that ended after their lease: ``late.json`` is written, nothing is committed."""
    running: tuple[RunningTry, ...] = ()
    free_slots: int
    draining: str = ""
    """Why the node takes no more leases; empty: it does."""
    clock_s: float | None = None
    """The node's wall clock when it answered, seconds since 1970."""
    held_s: Annotated[float, Field(ge=0)] = 0.0
    """How long it held the orders before it answered, by its monotonic clock."""
    spent: Spending = Spending()
    """By the node under this generation; tries that an earlier one has recorded are left out."""
    ceiling: Allowance | None = None
    """The allowance in force, never below what is spent."""
    wants: bool = False
    """Whether a call waits for a higher one."""
    accounts: dict[str, AccountNews] = Field(default_factory=dict)
    """What it has seen of the accounts that it was lent permits of."""
    endpoints: dict[str, EndpointNews] = Field(default_factory=dict)
    """How requests fare, by endpoint."""

    def to_json(self) -> str:
        """As that of ``Orders``."""
        return self.model_dump_json(by_alias=True)


@functools.cache
def protocol_version() -> str:
    """What a driver and a node must have in common to understand each other."""
    return exchange_version(Orders, Progress, SweepSpec)


def exchange_version(*formats: type[Strict]) -> str:
    """The version that follows from formats.

    A format refuses fields that it does not know: a field more or less is another version.
    """
    bare = [_bare(each.model_json_schema()) for each in formats]
    return f"{MEANING}-{sha256_hex(canonical_json(bare))[:12]}"


def _bare(schema: Any) -> Any:
    """A JSON Schema without its texts."""
    if isinstance(schema, dict):
        return {
            key: _bare(value)
            for key, value in schema.items()
            if not (key in ("title", "description") and isinstance(value, str))
        }
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
