"""Random histories of a sweep: queue, twin, and a model of the store and of the nodes.

A history is a list of steps, a step a list of numbers: the first picks the action, the others
whatever the action must choose. Any list of numbers is a legal history, so that one that fails
can be made smaller by leaving steps out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from scheduler.queue import LostLease, WorkQueue
from scheduler.retry import DeadRetry, Revival, Spent, fresh_from, spent_by
from tests.scheduler.builders import SWEEP
from tests.scheduler.queue.history_checks import check
from tests.scheduler.queue.history_world import (
    CAUSES,
    CELLS,
    FIRST_CELLS,
    GRACE_S,
    LIMITS,
    NODES,
    PATTERNS,
    WEATHERS,
    ModelStore,
)
from tests.scheduler.queue.twin import Row, TwinQueue
from workers.contract.outcome import Cause, Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import Lease

T = TypeVar("T")
Step = list[int]


class History:
    """One sweep under one driver after another, with everything that may come late or twice."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.generation = 0
        self.planned: list[tuple[str, str]] = []
        """Attempt and cell, as the locks have them."""
        self.store = ModelStore()
        self.running: dict[str, list[Lease]] = {node: [] for node in NODES}
        """What each node has in its hands, whatever the driver thinks."""
        self.reports: list[TryRecord] = []
        """Ends of tries that the driver has not been told of, or is told of again."""
        self.lost: list[LostLease] = []
        self.weather: tuple[Cause, ...] = CAUSES
        self._numbers: Sequence[int] = ()
        self._place = 0
        self._new_driver()
        for cell in FIRST_CELLS:
            self._plan(cell)

    def run(self, steps: Sequence[Step]) -> None:
        """Acts step by step; what must always hold is looked at after each."""
        for step in steps:
            self._numbers, self._place = step, 1
            ACTIONS[step[0] % len(ACTIONS)](self)
            check(self.queue, self.twin, self.store, len(self.planned))

    def _choose(self, below: int) -> int:
        number = self._numbers[self._place] if self._place < len(self._numbers) else 0
        self._place += 1
        return number % below

    def _pick(self, things: Sequence[T]) -> T:
        return things[self._choose(len(things))]

    # Drivers and plans

    def _new_driver(self) -> None:
        self.generation += 1
        self.queue = WorkQueue(self.generation, LIMITS, grace_s=GRACE_S)
        self.twin = TwinQueue(LIMITS, GRACE_S)

    def _plan(self, cell: str) -> None:
        attempt = f"{cell}-{len(self.planned)}"
        self.planned.append((attempt, cell))
        self._enqueue(attempt, cell, Spent(), None)

    def _enqueue(self, attempt: str, cell: str, spent: Spent, row: Row | None) -> None:
        condition, endpoints = CELLS[cell]
        self.queue.enqueue(
            attempt, index=0, cell=cell, condition=condition, spent=spent, endpoints=endpoints
        )
        self.twin.enqueue(attempt, cell, condition, endpoints, row)

    def grow(self) -> None:
        """The sweep gets more attempts; one of those that it has is planned again for nothing."""
        if len(self.planned) < 25:
            for _ in range(1 + self._choose(3)):
                self._plan(self._pick(sorted(CELLS)))
        attempt, cell = self._pick(self.planned)
        self._enqueue(attempt, cell, Spent(), None)

    def driver_lost(self) -> None:
        """Another driver rebuilds the queue from the store alone, and may revive the dead."""
        retry = DeadRetry() if self._choose(2) else None
        self.reports.clear()
        self.lost.clear()
        self._new_driver()
        for attempt, _ in self.planned:
            for each in self.store.tries_of(attempt):
                if each.verdict is not Verdict.INVALID:
                    self.store.results.setdefault(attempt, each)
        fresh = fresh_from(self.store.revivals)
        spent = {a: spent_by(self.store.tries_of(a), fresh.get(a, 0)) for a, _ in self.planned}
        if retry is not None:
            dead = [
                attempt
                for attempt, _ in self.planned
                if attempt not in self.store.results
                and self.store.tries_of(attempt)
                and retry.means(
                    spent[attempt], self.store.tries_of(attempt)[-1].cause, LIMITS.max_tries
                )
            ]
            spent.update({attempt: spent[attempt].fresh() for attempt in dead})
            self.store.revivals.append(
                Revival(
                    sweep=SWEEP, generation=self.generation, at="", causes=(), attempts=tuple(dead)
                )
            )
        for attempt, cell in self.planned:
            self._enqueue(attempt, cell, spent[attempt], self._row_of(attempt, cell))
        for attempt, result in self.store.results.items():
            self.queue.committed(attempt, result.verdict, result.cause)
            self.twin.committed(attempt)
        for node in NODES:
            if self._choose(2) == 0:
                self._adopt(node)

    def _row_of(self, attempt: str, cell: str) -> Row:
        """The tries of earlier drivers, counted by hand."""
        row = Row(attempt, cell, *CELLS[cell])
        since = max([r.generation for r in self.store.revivals if attempt in r.attempts], default=0)
        for each in self.store.tries_of(attempt):
            if each.verdict is not Verdict.INVALID or each.cause is Cause.CANCELLED:
                continue
            if each.cause is Cause.RATE_LIMITED and each.probe:
                continue
            row.counted.append(each.try_)
            if each.epoch[0] >= since:
                row.tries += 1
                row.once += each.cause in (Cause.VERIFIER_CRASH, Cause.UNCLASSIFIED)
        return row

    def adopt(self) -> None:
        """A node tells which tries it runs."""
        self._adopt(self._pick(NODES))

    def _adopt(self, node: str) -> None:
        # A try that this driver leased is known to it, and no node tells of it as another's.
        tries = {e.attempt: e.epoch for e in self.running[node]}
        adopted = self.queue.adopt(node, tries, self.now)
        assert adopted == self.twin.adopt(node, {a: str(e) for a, e in tries.items()}, self.now)

    # Leases

    def lease(self) -> None:
        """A node asks for attempts."""
        node, count = self._pick(NODES), self._choose(6)
        twin, now = self.twin, self.now
        available = Counter(row.condition for row in twin.leasable(now))
        some = bool(available or twin.probeable(now))
        broken, due = twin.node_open(node), node in twin.nodes and twin.nodes[node].due(now)
        given = self.queue.lease(node, count, now)
        twin.renew(node, now)
        for each in given:
            twin.give(each.attempt, node, str(each.epoch), now, each.probe)
        self.running[node] += given
        counters = [each.epoch.counter for each in given]
        assert counters == sorted(set(counters))
        plain = [each for each in given if not each.probe]
        if broken:
            assert len(given) == min(count, 1 if due and some else 0)
            return
        probes = len(given) - len(plain)
        assert len(plain) == min(count - probes, available.total())
        assert len(given) == count or not twin.probeable(now)
        if len(twin.renewed) == 1:
            # Nothing is passed over for another node's sake: the turns are even.
            taken = Counter(twin.row(each.attempt).condition for each in plain)
            for one in (c for c in available if taken[c] < available[c]):
                assert all(taken[one] >= taken[other] - 1 for other in taken)

    def started(self) -> None:
        """A node says what it runs."""
        node = self._pick(NODES)
        self.queue.started(node, [row.attempt for row in self.twin.held(node)] + ["unknown"])
        self.twin.started(node)

    def renew(self) -> None:
        """Orders go to a node."""
        node = self._pick(NODES)
        self.queue.renew(node, self.now)
        self.twin.renew(node, self.now)

    def finish(self) -> None:
        """A node ends some of its tries: files, then perhaps the commit, then a report."""
        node = self._pick(NODES)
        for _ in range(min(1 + self._choose(4), len(self.running[node]))):
            lease = self.running[node].pop(self._choose(len(self.running[node])))
            made = self._record(node, lease, self._pick(self.weather))
            # A lost lease's record may have been written by the driver already.
            self.store.tries.setdefault((lease.attempt, made.try_), made)
            if made.verdict is not Verdict.INVALID:
                late = self._choose(4) == 0
                if late or self.store.results.setdefault(lease.attempt, made) is not made:
                    continue  # late, or superseded: no such report reaches the queue
            self.reports.append(made)
            if self._choose(4):
                self._deliver(len(self.reports) - 1, again=self._choose(4) == 0)

    def _record(self, node: str, lease: Lease, cause: Cause) -> TryRecord:
        endpoints = CELLS[lease.attempt.partition("-")[0]][1]
        named: str | None = self._pick((*endpoints, *endpoints, None, "elsewhere"))
        return PATTERNS[cause, lease.probe].model_copy(
            update={
                "attempt": lease.attempt,
                "try_": str(lease.epoch),
                "epoch": tuple(lease.epoch),
                "node": node,
                "endpoint": named if cause is Cause.RATE_LIMITED else None,
            }
        )

    def report(self) -> None:
        """An earlier report arrives; some come twice."""
        if self.reports:
            self._deliver(self._choose(len(self.reports)), again=self._choose(3) == 0)

    def _deliver(self, place: int, *, again: bool) -> None:
        made = self.reports[place]
        if not again:
            del self.reports[place]
        for _ in range(1 + again):
            news = self.queue.ended(made, self.now)
            assert news == self.twin.ended(
                made.attempt, made.try_, made.cause, made.endpoint, made.probe, self.now
            )

    def given_back(self) -> None:
        """A node refuses a lease that it has not begun."""
        node = self._pick(NODES)
        leased = [each for each in self.running[node] if self._is_leased(each)]
        if leased:
            lease = self._pick(leased)
            self.running[node].remove(lease)
            for _ in range(2):
                news = self.queue.given_back(lease.attempt, lease.epoch)
                assert news == self.twin.given_back(lease.attempt, str(lease.epoch))

    def _is_leased(self, lease: Lease) -> bool:
        row = self.twin.row(lease.attempt)
        return row.state == "leased" and row.try_ == str(lease.epoch)

    # Losses

    def time_passes(self) -> None:
        """The clock jumps forwards."""
        self.now += self._pick((0.5, 5.0, 20.0, 45.0, 69.0, 71.0, 700.0))

    def expire(self) -> None:
        """The driver looks at its leases."""
        overdue = self.twin.overdue(self.now)
        lost = self.queue.expire(self.now)
        rows = [row for rows in overdue.values() for row in rows]
        assert {each.attempt for each in lost} == {row.attempt for row in rows}
        self._lose(lost, list(overdue.values()))

    def node_lost(self) -> None:
        """A node dies with all that it runs."""
        node = self._pick(NODES)
        self.running[node].clear()
        lost = self.queue.node_lost(node)
        self._lose(lost, [self.twin.held(node)])
        self.twin.node_lost(node)

    def forgotten(self) -> None:
        """A living node knows nothing of some leases."""
        node = self._pick(NODES)
        bits = self._choose(1 << 20)
        some = [row for place, row in enumerate(self.twin.held(node)) if bits >> place & 1]
        names = {row.attempt for row in some}
        self.running[node] = [e for e in self.running[node] if e.attempt not in names]
        lost = self.queue.forgotten(node, [*sorted(names), "unknown"])
        self._lose(lost, [some])

    def _lose(self, lost: list[LostLease], events: list[list[Row]]) -> None:
        order = {each.attempt: place for place, each in enumerate(lost)}
        for rows in events:
            self.twin.lose(sorted(rows, key=lambda row: order[row.attempt]))
        self.lost += lost

    def ask_store(self) -> None:
        """The store answers what became of a lost try; answers may come in any order."""
        for _ in range(min(len(self.lost), 1 + self._choose(3))):
            lost = self.lost.pop(self._choose(len(self.lost)))
            finished = [e for e in self.store.tries_of(lost.attempt) if e.verdict != "invalid"]
            if finished:
                self.store.results.setdefault(lost.attempt, finished[0])
            result = self.store.results.get(lost.attempt)
            if result is not None:
                news = self.queue.committed(lost.attempt, result.verdict, result.cause)
                assert news == self.twin.committed(lost.attempt)
                continue
            news = self.queue.release(lost, self.now)
            assert news == self.twin.release(lost.attempt, str(lost.epoch), self.now)
            if news:
                lease = Lease(
                    attempt=lost.attempt, index=0, cell=lost.cell, epoch=lost.epoch, term_s=1.0
                )
                made = self._record(lost.node, lease, Cause.CONTAINER_LOST)
                self.store.tries.setdefault((lost.attempt, made.try_), made)

    # The world

    def weather_changes(self) -> None:
        """Tries end for other causes than before."""
        self.weather = self._pick(WEATHERS)

    def endpoint_word(self) -> None:
        """Whoever sees the requests says how an endpoint is."""
        name = self._pick(("e1", "e2", "e3"))
        if self._choose(2):
            assert self.queue.endpoint_up(name) == self.twin.close_endpoint(name)
        else:
            news = self.queue.endpoint_down(name, self.now)
            assert news == self.twin.open_endpoint(name, self.now)


ACTIONS: tuple[Callable[[History], None], ...] = (
    *(History.lease,) * 12,
    *(History.finish,) * 12,
    *(History.time_passes,) * 7,
    *(History.ask_store,) * 2,
    History.report,
    History.started,
    History.renew,
    History.given_back,
    History.expire,
    History.node_lost,
    History.forgotten,
    History.endpoint_word,
    *(History.weather_changes,) * 5,
    History.grow,
    History.adopt,
    History.driver_lost,
)
