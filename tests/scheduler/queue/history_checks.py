"""What holds after each step of a history."""

from __future__ import annotations

from collections import Counter

from scheduler.queue import State, WorkQueue
from scheduler.retry import may_try
from tests.scheduler.queue.history_world import LIMITS, NODES, ModelStore
from tests.scheduler.queue.twin import TwinQueue


def check(queue: WorkQueue, twin: TwinQueue, store: ModelStore, planned: int) -> None:
    """Queue, twin and store agree, and the promises are kept."""
    # None is lost, and each is where the twin has it.
    assert len(twin.rows) == planned
    for row in twin.rows:
        assert queue.state(row.attempt) == row.state, row
        spent = queue.spent(row.attempt)
        assert spent[:2] == (row.tries, row.once), row
        # Tries never exceed the limit, but for those that went on without their driver.
        assert row.tries <= max(LIMITS.max_tries, row.earlier), row
        if not may_try(spent, LIMITS.max_tries):
            assert row.state not in ("planned", "leased"), row
        # Evidence of every counted try is reachable.
        assert all((row.attempt, try_) in store.tries for try_ in row.counted), row
        if row.state == "committed":
            assert row.attempt in store.results
    _check_holders(queue, twin)
    _check_counts(queue, twin, store)
    _check_standings(queue, twin, store)
    assert queue.settled == twin.settled()
    assert queue.waiting_for_endpoints() == twin.waiting()
    for node in NODES:
        assert (queue.broken_since([node]) is not None) == twin.node_open(node)
    changes = Counter((c.kind, c.name) for c in queue.breaker_changes if c.opened)
    changes.subtract((c.kind, c.name) for c in queue.breaker_changes if not c.opened)
    for name, breaker in twin.endpoints.items():
        assert changes["endpoint", name] == (breaker.opened_at is not None)


def _check_holders(queue: WorkQueue, twin: TwinQueue) -> None:
    """None is held twice, and none both counted and held."""
    holders: dict[str, str] = {}
    for node in NODES:
        held = queue.held(node)
        assert {a: str(e) for a, e in held.items()} == {
            row.attempt: row.try_ for row in twin.held(node)
        }
        for attempt in held:
            assert holders.setdefault(attempt, node) == node
            assert queue.state(attempt) in (State.LEASED, State.RUNNING)
    assert queue.held_count() == len(holders)


def _check_standings(queue: WorkQueue, twin: TwinQueue, store: ModelStore) -> None:
    """Each stands where it is, and a commit stands by its cause."""
    stood, committed = Counter[tuple[str, str]](), Counter[str]()
    for cell, state, cause, count in queue.standings():
        assert count > 0
        stood[cell, state] += count
        if state == "committed":
            committed[cause] += count
    assert stood == Counter((row.cell, row.state) for row in twin.rows)
    assert committed == Counter(
        store.results[row.attempt].cause for row in twin.rows if row.state == "committed"
    )


def _check_counts(queue: WorkQueue, twin: TwinQueue, store: ModelStore) -> None:
    """Counts add up, and none is counted twice."""
    rows = twin.rows
    for condition, counts in queue.counts().items():
        of = [row for row in rows if row.condition == condition]
        states = Counter(row.state for row in of)
        held = states["leased"] + states["running"] + states["lost"]
        assert (counts.planned, counts.held) == (states["planned"], held)
        assert (counts.dead, counts.parked) == (states["dead"], states["parked"])
        assert counts.passed + counts.failed == states["committed"]
        passed = sum(
            row.state == "committed" and store.results[row.attempt].verdict == "pass" for row in of
        )
        assert counts.passed == passed
        assert counts.total == len(of)
        assert counts.invalid_tries == sum(len(row.counted) for row in of)
