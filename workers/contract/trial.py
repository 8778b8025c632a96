"""Between a node and the trials that it runs."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from workers.contract.outcome import Phase
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Lease


class Commit(enum.StrEnum):
    """What became of the commit of an ended try."""

    WRITTEN = "written"
    """``result.json`` is this try's."""
    SUPERSEDED = "superseded"
    """Another try of the attempt had been committed; this one does not count."""
    LATE = "late"
    """The lease's deadline had passed: ``late.json`` was written, nothing committed."""
    NONE = "none"
    """An invalid try: there is nothing to commit."""


@dataclass(frozen=True)
class TrialEnd:
    """A trial that ended; its evidence is in the store unless the record says otherwise."""

    record: TryRecord
    commit: Commit


class Control(Protocol):
    """The node's side of a running trial."""

    cancelled: asyncio.Event
    """Set when the operator wants the trial to end now."""

    def lease_valid(self) -> bool:
        """Whether the node's monotonic clock is still before the lease's deadline."""
        ...

    def entered(self, phase: Phase) -> None:
        """Called by the trial as it enters a phase."""
        ...


TrialFunction = Callable[[CellSpec, Lease, Control], Awaitable[TrialEnd]]
"""Runs one try to its end. Never raises: what goes wrong is an outcome."""
