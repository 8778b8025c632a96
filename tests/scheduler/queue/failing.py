"""Queues whose attempts fail as they are told to."""

from __future__ import annotations

from scheduler.queue import WorkQueue
from tests.scheduler.builders import cell_spec, limits, record
from workers.contract.outcome import Cause
from workers.contract.spec import Lease

SPEC = cell_spec()
FAST = {"max_tries": 20, "poison": 99}


def queue_of(
    cells: int, k: int = 1, *, endpoints: tuple[str, ...] = (), **changes: object
) -> WorkQueue:
    """Cells ``0``, ``1``, … of one condition; attempts ``<cell>.<index>``."""
    queue = WorkQueue(1, limits(**{**FAST, **changes}), grace_s=10.0)
    add(queue, "a", cells, k, endpoints)
    return queue


def add(queue: WorkQueue, condition: str, cells: int, k: int, endpoints: tuple[str, ...]) -> None:
    for index in range(k):
        for cell in range(cells):
            queue.enqueue(
                f"{condition}{cell}.{index}",
                index=index,
                cell=f"{condition}{cell}",
                condition=condition,
                endpoints=endpoints,
            )


def end(
    queue: WorkQueue, lease: Lease, cause: Cause, now: float, endpoint: str | None = None
) -> None:
    made = record(SPEC, lease, cause)
    facts = {"endpoint": endpoint, "probe": lease.probe}
    queue.ended(made.model_copy(update=facts), now)


def fail_all(queue: WorkQueue, node: str, count: int, cause: Cause, now: float) -> None:
    for lease in queue.lease(node, count, now):
        end(queue, lease, cause, now)


def told(queue: WorkQueue) -> list[str]:
    return [f"{c.kind} {c.name} {'open' if c.opened else 'closed'}" for c in queue.breaker_changes]
