"""The batched exchange between driver and node."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, Lease


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
    running: dict[str, str] = Field(default_factory=dict)
    """Attempt to phase."""
    free_slots: int
    draining: str = ""
    """Why the node takes no more leases; empty: it does."""
