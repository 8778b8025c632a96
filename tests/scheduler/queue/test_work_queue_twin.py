"""The queue against its slow twin, on random histories."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from scheduler.queue import LostLease, WorkQueue
from scheduler.retry import Spent
from tests.scheduler.builders import cell_spec, limits, record
from tests.scheduler.queue.twin import Row, TwinQueue, verdict_of
from workers.contract.outcome import Cause, Verdict
from workers.contract.spec import Lease

NODES = ("n1", "n2")
CELLS = {"a1": "a", "b1": "b"}
SPEC = cell_spec()
CAUSES = (
    Cause.NONE,
    Cause.WRONG,
    Cause.CONTAINER_LOST,
    Cause.RATE_LIMITED,
    Cause.VERIFIER_CRASH,
    Cause.CANCELLED,
    Cause.UNCLASSIFIED,
)
LIMITS = limits(max_tries=3, poison=3, lease_term_s=60.0)
GRACE_S = 10.0

nodes = st.sampled_from(NODES)
picks = st.integers(min_value=0, max_value=10_000)


class QueueMachine(RuleBasedStateMachine):
    """One sweep under one driver after another, with everything that may come late or twice."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.generation = 0
        self.committed_by: dict[str, str] = {}
        """What the store says: attempt to the verdict of its one commit."""
        self.leases: list[tuple[str, Lease]] = []
        self.lost: list[LostLease] = []
        self.twin = TwinQueue(3, 3, 70.0)
        self._new_driver()

    def _new_driver(self) -> None:
        self.generation += 1
        self.queue = WorkQueue(self.generation, LIMITS, grace_s=GRACE_S)

    # Planning

    @initialize(counts=st.lists(st.integers(1, 4), min_size=2, max_size=2))
    def start(self, counts: list[int]) -> None:
        for cell, count in zip(sorted(CELLS), counts, strict=True):
            for index in range(count):
                self._enqueue(f"{cell}-first-{index}", index, cell, Spent())

    @rule(cell=st.sampled_from(sorted(CELLS)), count=st.integers(1, 2), tries=st.integers(0, 3))
    def enqueue(self, cell: str, count: int, tries: int) -> None:
        """A sweep starts, or grows."""
        for _ in range(count):
            index = len(self.twin.rows)
            self._enqueue(f"{cell}-{index}", index, cell, Spent(tries, tries // 2))

    @precondition(lambda self: self.twin.rows)
    @rule(pick=picks)
    def enqueue_again(self, pick: int) -> None:
        row = self.twin.rows[pick % len(self.twin.rows)]
        self._enqueue(row.attempt, 0, row.cell, Spent())

    def _enqueue(self, attempt: str, index: int, cell: str, spent: Spent) -> None:
        condition = CELLS[cell]
        self.queue.enqueue(attempt, index=index, cell=cell, condition=condition, spent=spent)
        self.twin.enqueue(attempt, cell, condition, *spent)

    # Leases

    @rule(node=nodes, count=st.integers(0, 4))
    def lease(self, node: str, count: int) -> None:
        available = Counter(row.condition for row in self.twin.leasable(self.now))
        given = self.queue.lease(node, count, self.now)
        self.twin.renew(node, self.now)
        assert len(given) == min(count, available.total())
        taken: Counter[str] = Counter()
        for each in given:
            row = self.twin.row(each.attempt)
            self.twin.give(each.attempt, node, str(each.epoch), self.now)
            taken[row.condition] += 1
            self.leases.append((node, each))
        counters = [each.epoch for _, each in self.leases]
        assert len(set(counters)) == len(counters)
        if len(self.twin.renewed) == 1:
            # Nothing is passed over for another node's sake: the turns are even.
            waiting = [c for c in available if taken[c] < available[c]]
            for one in waiting:
                assert all(taken[one] >= taken[other] - 1 for other in taken)

    @rule(node=nodes)
    def started(self, node: str) -> None:
        self.queue.started(node, [row.attempt for row in self.twin.held(node)] + ["unknown"])
        self.twin.started(node)

    @rule(node=nodes)
    def renew(self, node: str) -> None:
        self.queue.renew(node, self.now)
        self.twin.renew(node, self.now)

    @precondition(lambda self: self.leases)
    @rule(pick=picks, cause=st.sampled_from(CAUSES))
    def ended(self, pick: int, cause: Cause) -> None:
        """A report of any try that ever was; some come late, some twice."""
        _, given = self.leases[pick % len(self.leases)]
        if not self.twin.knows(given.attempt):
            return
        self._report(given, cause)

    @precondition(lambda self: any(self.twin.held(node) for node in NODES))
    @rule(pick=picks, cause=st.sampled_from(CAUSES), twice=st.booleans())
    def ended_in_time(self, pick: int, cause: Cause, twice: bool) -> None:
        held = [row for node in NODES for row in self.twin.held(node)]
        row = held[pick % len(held)]
        (given,) = (each for _, each in self.leases if str(each.epoch) == row.try_)
        for _ in range(1 + twice):
            self._report(given, cause)

    def _report(self, given: Lease, cause: Cause) -> None:
        if verdict_of(cause) is not Verdict.INVALID:
            if given.attempt in self.committed_by:
                return  # the node would have said "superseded"
            self.committed_by[given.attempt] = verdict_of(cause)
        news = self.queue.ended(record(SPEC, given, cause), self.now)
        assert news == self.twin.ended(given.attempt, str(given.epoch), cause, self.now)

    @precondition(lambda self: self.leases)
    @rule(pick=picks)
    def given_back(self, pick: int) -> None:
        _, given = self.leases[pick % len(self.leases)]
        if self.twin.knows(given.attempt):
            news = self.queue.given_back(given.attempt, given.epoch)
            assert news == self.twin.given_back(given.attempt, str(given.epoch))

    @precondition(lambda self: self.committed_by)
    @rule(pick=picks)
    def found_in_store(self, pick: int) -> None:
        attempt = sorted(self.committed_by)[pick % len(self.committed_by)]
        if self.twin.knows(attempt):
            news = self.queue.committed(attempt, Verdict(self.committed_by[attempt]))
            assert news == self.twin.committed(attempt)

    # Losses

    @rule(seconds=st.sampled_from((0.5, 3.0, 20.0, 71.0, 10_000.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def expire(self) -> None:
        overdue = self.twin.overdue(self.now)
        lost = self.queue.expire(self.now)
        rows = [row for rows in overdue.values() for row in rows]
        assert {each.attempt for each in lost} == {row.attempt for row in rows}
        self._lose(lost, list(overdue.values()))

    @rule(node=nodes)
    def node_lost(self, node: str) -> None:
        lost = self.queue.node_lost(node)
        self._lose(lost, [self.twin.held(node)])
        self.twin.renewed.pop(node, None)

    @rule(node=nodes, pick=picks)
    def forgotten(self, node: str, pick: int) -> None:
        held = self.twin.held(node)
        some = [row for place, row in enumerate(held) if pick >> place & 1]
        lost = self.queue.forgotten(node, [row.attempt for row in some] + ["unknown"])
        self._lose(lost, [some])

    def _lose(self, lost: list[LostLease], events: list[list[Row]]) -> None:
        order = {each.attempt: place for place, each in enumerate(lost)}
        for rows in events:
            self.twin.lose(sorted(rows, key=lambda row: order[row.attempt]))
        self.lost += lost

    @precondition(lambda self: self.lost)
    @rule(pick=picks)
    def release(self, pick: int) -> None:
        lost = self.lost[pick % len(self.lost)]
        if self.twin.knows(lost.attempt):
            news = self.queue.release(lost, self.now)
            assert news == self.twin.release(lost.attempt, str(lost.epoch), self.now)

    @precondition(lambda self: self.twin.rows)
    @rule()
    def driver_lost(self) -> None:
        """Another driver rebuilds the queue from the store alone."""
        before = self.twin.rows
        self.twin = TwinQueue(3, 3, 70.0)
        self.lost.clear()
        self._new_driver()
        for index, row in enumerate(before):
            self._enqueue(row.attempt, index, row.cell, Spent(row.tries, row.once))
        for row in before:
            if row.attempt in self.committed_by:
                self.queue.committed(row.attempt, Verdict(self.committed_by[row.attempt]))
                self.twin.committed(row.attempt)

    # What always holds

    @invariant()
    def none_is_lost(self) -> None:
        for row in self.twin.rows:
            assert self.queue.state(row.attempt) == row.state
            assert tuple(self.queue.spent(row.attempt)) == (row.tries, row.once)
        assert self.queue.settled == self.twin.settled()
        total = sum(each.total for each in self.queue.counts().values())
        assert total == len(self.twin.rows)

    @invariant()
    def none_is_counted_twice(self) -> None:
        counts = self.queue.counts().values()
        counted = sum(each.passed + each.failed for each in counts)
        assert counted == sum(row.state == "committed" for row in self.twin.rows)

    @invariant()
    def none_is_counted_and_leased(self) -> None:
        holders: dict[str, str] = {}
        for node in NODES:
            assert set(self.queue.held(node)) == {row.attempt for row in self.twin.held(node)}
            for attempt in self.queue.held(node):
                assert holders.setdefault(attempt, node) == node
                assert self.queue.state(attempt) in ("leased", "running")
        assert self.queue.held_count() == len(holders)

    @invariant()
    def tries_never_exceed_the_limit(self) -> None:
        for row in self.twin.rows:
            assert row.tries <= LIMITS.max_tries
            if row.tries == LIMITS.max_tries:
                assert row.state in ("dead", "committed")

    @invariant()
    def counts_by_state_agree(self) -> None:
        for condition, counts in self.queue.counts().items():
            states = Counter(r.state for r in self.twin.rows if r.condition == condition)
            held = states["leased"] + states["running"] + states["lost"]
            found: dict[str, Any] = {"planned": counts.planned, "held": counts.held}
            assert found == {"planned": states["planned"], "held": held}
            assert (counts.dead, counts.parked) == (states["dead"], states["parked"])
            tries = sum(r.tries for r in self.twin.rows if r.condition == condition)
            assert counts.invalid_tries >= tries


QueueMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestQueueAgainstTwin = QueueMachine.TestCase
