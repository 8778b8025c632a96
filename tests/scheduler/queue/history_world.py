"""The small world of a history: cells, nodes, limits, and a model of the store."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.retry import Revival
from tests.scheduler.builders import cell_spec, limits, record
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord
from workers.contract.spec import Epoch, Lease

NODES = ("n1", "n2")
CELLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a1": ("a", ("e1",)),
    "a2": ("a", ("e1",)),
    "b1": ("b", ("e2",)),
    "c1": ("c", ("e1", "e2")),
    "d1": ("d", ()),
}
"""Cell to its condition and endpoints."""
FIRST_CELLS = ("a1", "a2", "b1", "c1")
SPEC = cell_spec()
CAUSES = (
    *(Cause.NONE, Cause.WRONG, Cause.CONTAINER_LOST, Cause.RATE_LIMITED),
    *(Cause.VERIFIER_CRASH, Cause.CANCELLED, Cause.UNCLASSIFIED),
)
WEATHERS: tuple[tuple[Cause, ...], ...] = (
    CAUSES,
    *((Cause.NONE, Cause.WRONG),) * 2,
    (Cause.CONTAINER_LOST,) * 6 + CAUSES[:1],
    (Cause.CONTAINER_LOST,),
    (Cause.RATE_LIMITED,) * 9 + CAUSES[:1],
    (Cause.CONTAINER_LOST, Cause.RATE_LIMITED, Cause.UNCLASSIFIED),
)
"""What tries end for; it changes from time to time."""
PATTERNS = {
    (cause, probe): record(
        SPEC,
        Lease(attempt="a" * 32, index=0, cell=SPEC.cell, epoch=Epoch(1, 1), term_s=1.0),
        cause,
    ).model_copy(update={"probe": probe})
    for cause in CAUSES
    for probe in (False, True)
}
LIMITS = limits(
    max_tries=3,
    poison=4,
    lease_term_s=60.0,
    node_breaker=3,
    node_breaker_s=600.0,
    node_probe_s=15.0,
    endpoint_breaker=3,
    endpoint_probe_s=70.0,
)
GRACE_S = 10.0


@dataclass
class ModelStore:
    """What outlives every driver: files that are created once."""

    tries: dict[tuple[str, str], TryRecord] = field(default_factory=dict)
    """(attempt, try) to its ``try.json``."""
    results: dict[str, TryRecord] = field(default_factory=dict)
    revivals: list[Revival] = field(default_factory=list)

    def tries_of(self, attempt: str) -> list[TryRecord]:
        found = [each for (of, _), each in self.tries.items() if of == attempt]
        return sorted(found, key=lambda each: each.epoch)
